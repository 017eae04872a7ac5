package snapshots

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy means that another process saves or prunes in the same directory.
var ErrBusy = errors.New("snapshots: another save or prune is under way")

// maxFiles bounds one directory.
const maxFiles = 10_000

// The states of a listed file.
const (
	// StateSaved: it has the name that only a verified file gets, and a possible
	// size. It was not read now.
	StateSaved = "saved"
	// StateVerified: it was read to its end now, and is whole.
	StateVerified = "verified"
	// StateForeign: a .db file that this package did not name, not read now.
	StateForeign = "foreign"
	// StateBad: Problem says why it is no snapshot.
	StateBad = "bad"
)

// File is one file of a directory.
type File struct {
	Path string `json:"path"`
	// Time is when the save began; of a foreign file, when it was last written.
	Time time.Time `json:"time"`
	// Host is where it was taken; empty for a foreign file.
	Host string `json:"host,omitempty"`
	// Revision is 0 for a foreign file that was not read.
	Revision int64  `json:"revision,omitempty"`
	Size     int64  `json:"size_bytes"`
	State    string `json:"state"`
	Problem  string `json:"problem,omitempty"`
}

// Name is the file's name without the directory.
func (f File) Name() string { return filepath.Base(f.Path) }

// List gives the snapshots in a directory, newest first. It does not read them;
// Check does. Partial files that nobody writes any more are removed, where that
// is possible. A directory that does not exist holds none.
func List(dir string) ([]File, error) {
	if unlock, err := lock(dir); err == nil {
		_ = removePartial(dir) // a read-only directory may still be listed
		unlock()
	}
	return list(dir)
}

func list(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("snapshots: list: %w", err)
	}
	if len(entries) > maxFiles {
		return nil, fmt.Errorf("snapshots: list: %s holds %d files; at most %d are expected: is it the right directory?", dir, len(entries), maxFiles)
	}
	var out []File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || e.IsDir() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned in between
		}
		if err != nil {
			return nil, fmt.Errorf("snapshots: list: %w", err)
		}
		out = append(out, look(dir, info))
	}
	slices.SortFunc(out, func(a, b File) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Path, b.Path))
	})
	return out, nil
}

func look(dir string, info fs.FileInfo) File {
	f := File{Path: filepath.Join(dir, info.Name()), Time: info.ModTime().UTC().Truncate(time.Second), Size: info.Size(), State: StateForeign}
	if n, err := ParseName(info.Name()); err == nil {
		f.Time, f.Host, f.Revision, f.State = n.Time, n.Host, n.Revision, StateSaved
	}
	if !info.Mode().IsRegular() {
		f.State, f.Problem = StateBad, "it is not a regular file"
	} else if why := badSize(info.Size()); why != "" {
		f.State, f.Problem = StateBad, why
	}
	return f
}

// Check reads the file to its end and gives it with its new state.
func (f File) Check(ctx context.Context) (File, error) {
	facts, err := Verify(ctx, f.Path)
	damage := (*badFile)(nil)
	switch {
	case ctx.Err() != nil:
		return f, ctx.Err()
	case errors.As(err, &damage):
		f.State, f.Problem = StateBad, damage.why
	case err != nil:
		f.State, f.Problem = StateBad, err.Error()
	default:
		f.State, f.Revision = StateVerified, facts.Revision
	}
	return f, nil
}

// minSize is the smallest database of bbolt, four pages of 4 KiB, with the hash.
// etcd's own are larger.
const minSize = 4*4096 + sha256.Size

// badSize says why no snapshot has this many bytes.
func badSize(n int64) string {
	switch {
	case n < minSize:
		return fmt.Sprintf("it has %d bytes, a snapshot has at least %d: it is cut off, or something else", n, minSize)
	case n%512 != sha256.Size:
		// Pages are multiples of 512, and the hash comes after them
		// (etcdutl/snapshot, hasChecksum).
		return fmt.Sprintf("it has %d bytes, which is not whole pages and a SHA-256 after them: it is cut off, or was copied out of a data directory", n)
	}
	return ""
}

// lock takes the directory, or gives ErrBusy. The kernel ends the lock with the
// process, so a killed save locks nobody out.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("snapshots: lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w in %s: wait for it to end", ErrBusy, dir)
		}
		return nil, fmt.Errorf("snapshots: lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// removePartial removes what interrupted saves left. The caller holds the lock,
// so nobody is writing them.
func removePartial(dir string) error {
	names, err := filepath.Glob(filepath.Join(globQuote(dir), "*_*"+partial))
	if err != nil {
		return fmt.Errorf("snapshots: find partial files: %w", err)
	}
	for _, n := range names {
		if err := os.Remove(n); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("snapshots: remove what an interrupted save left: %w", err)
		}
	}
	return nil
}

func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// makeDir makes the directory for files that only its owner may read.
func makeDir(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return fmt.Errorf("snapshots: make the directory: %w", err)
	}
	return nil
}

// free is what may still be written to the filesystem of a directory, in bytes.
func free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("snapshots: free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// needFree refuses where fewer than want bytes are free.
func needFree(dir string, want int64, what string) error {
	have, err := free(dir)
	if err != nil {
		return err
	}
	if have < want {
		return fmt.Errorf("snapshots: %s: %w: %s free, %s needs %s: free space there, or name another directory",
			dir, ErrDiskSpace, bytesText(have), what, bytesText(want))
	}
	return nil
}

// ErrDiskSpace means that the filesystem has less room than the database.
var ErrDiskSpace = errors.New("disk-space")

// bytesText is a size for people: "12.3 MiB".
func bytesText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f < 1<<10 {
			break
		}
		f, unit = f/(1<<10), u
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// place gives a file or directory its name, and never replaces what has it.
func place(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// A filesystem without it (NFS): look first, under our lock.
		if _, gone := os.Lstat(to); gone == nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EEXIST}
		}
		err = unix.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return syncDir(filepath.Dir(to))
}

// syncDir makes a new name outlast a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
