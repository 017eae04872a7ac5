package standby

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// manifestDir is root's alone: what removes by the manifest does so as root, so
// that it must not lie where the services' user can write.
const manifestDir = "/var/lib/suffrage-standby"

// Kinds of a change.
const (
	madeDirectory = "directory"
	wroteFile     = "file"
	enabledUnit   = "enable"
)

// change is one thing that Prepare did.
type change struct {
	Kind string `json:"kind"`
	// Path is the directory or the file, or the name of the unit.
	Path string `json:"path"`
	// Was is what was there before the first Prepare, null where nothing was.
	Was *former `json:"was"`
	// Wrote is the SHA-256 of what a file has got.
	Wrote string `json:"wrote,omitempty"`
}

// former is a file or a directory as it was.
type former struct {
	Content  []byte      `json:"content,omitempty"`
	Mode     fs.FileMode `json:"mode"`
	UID      int         `json:"uid"`
	GID      int         `json:"gid"`
	Modified time.Time   `json:"modified"`
}

// manifest is all that Prepare did here.
type manifest struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	// Data is the data directory, and Entries what was in it; null where it was not
	// there.
	Data    string   `json:"data"`
	Entries []string `json:"entries"`
	Changes []change `json:"changes"`
}

const manifestVersion = 1

func (h Host) manifestFile() string { return h.at(filepath.Join(manifestDir, "manifest.json")) }

// manifest reads what was done here, nil where nothing was.
func (h Host) manifest() (*manifest, error) {
	data, err := readSmall(h.manifestFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("standby: read the manifest: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("standby: read the manifest %s: %w; it was written here by suffrage standby prepare: look at what changed it", h.manifestFile(), err)
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("standby: the manifest %s has version %d, this suffrage reads %d: use the one that wrote it", h.manifestFile(), m.Version, manifestVersion)
	}
	return &m, nil
}

// begin is a new manifest.
func (h Host) begin() (*manifest, error) {
	m := &manifest{Version: manifestVersion, At: h.Now().UTC(), Data: h.Data}
	entries, err := os.ReadDir(h.at(h.Data))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	m.Entries = []string{}
	for _, e := range entries {
		m.Entries = append(m.Entries, e.Name())
	}
	return m, err
}

// note says what is about to be changed. What was there first stays said.
func (m *manifest) note(c change) {
	i := slices.IndexFunc(m.Changes, func(o change) bool { return o.Kind == c.Kind && o.Path == c.Path })
	if i < 0 {
		m.Changes = append(m.Changes, c)
		return
	}
	m.Changes[i].Wrote = c.Wrote
}

func (h Host) save(m *manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("standby: write the manifest: %w", err)
	}
	return replace(h.manifestFile(), append(data, '\n'), former{Mode: 0o600, UID: os.Geteuid(), GID: os.Getegid()})
}

// lock keeps two of these commands apart. The kernel ends it with the process.
func (h Host) lock() (unlock func(), err error) {
	dir := h.at(manifestDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("standby: make the manifest's directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("standby: %w", err)
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); !info.IsDir() || info.Mode().Perm() != 0o700 || owner != os.Geteuid() {
		return nil, fmt.Errorf("standby: %s has to be a directory of root's with mode 0700, and is %s of user %d: look at what made it", manifestDir, info.Mode(), owner)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("standby: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("standby: another suffrage standby is at work here (%w): wait for its end", err)
	}
	return func() { f.Close() }, nil
}

// as is what is at a path now, nil where nothing is.
func as(path string) (*former, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st := info.Sys().(*syscall.Stat_t)
	f := &former{Mode: info.Mode().Perm(), UID: int(st.Uid), GID: int(st.Gid), Modified: info.ModTime()}
	if info.IsDir() {
		return f, nil
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is neither a file nor a directory (%s): move it away", path, info.Mode().Type())
	}
	f.Content, err = readSmall(path)
	return f, err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// replace returns when the file is on the disk under its name, whole. Its
// directory is root's.
func replace(path string, content []byte, f former) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".suffrage-*")
	if err != nil {
		return fmt.Errorf("standby: write: %w", err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chown(f.UID, f.GID), temp.Chmod(f.Mode), temp.Sync(), temp.Close())
	if err == nil && !f.Modified.IsZero() {
		err = os.Chtimes(temp.Name(), time.Time{}, f.Modified)
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("standby: write %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("standby: sync: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("standby: sync %s: %w", path, err)
	}
	return nil
}
