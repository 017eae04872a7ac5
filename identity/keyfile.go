package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// maxPEM bounds key, certificate and request files, in bytes; ours are under 2 KiB.
const maxPEM = 64 << 10

// Save writes the key to a new file of mode 0600. The file appears whole and on disk, or not at all;
// if the path exists the error is fs.ErrExist and nothing changes.
func (k *Key) Save(path string) error {
	data, err := k.encode()
	if err != nil {
		return err
	}
	if err := writeNew(path, data, 0o600); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("identity: save key %s: %w: a key is never overwritten; move the old one away if it is no longer in any roster", path, fs.ErrExist)
		}
		return fmt.Errorf("identity: save key: %w", err)
	}
	return nil
}

// LoadKey reads a key that Save wrote. It refuses what is not a regular file (a symbolic link to one
// is fine) and a mode wider than 0600, each with ErrKeyFile.
func LoadKey(path string) (*Key, error) {
	f, err := open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("identity: read key %s: %w: 'suffrage identity init' makes one", path, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("identity: read key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("identity: read key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("identity: read key %s: %w: not a regular file (%s)", path, ErrKeyFile, info.Mode().Type())
	}
	if mode := info.Mode().Perm(); mode&^0o600 != 0 {
		return nil, fmt.Errorf("identity: read key %s: %w: mode %04o is wider than 0600; if nobody else can have read it, run: chmod 0600 %s", path, ErrKeyFile, mode, shellQuote(path))
	}
	data, err := readBounded(f)
	if err != nil {
		return nil, fmt.Errorf("identity: read key %s: %w: %w", path, ErrKeyFile, err)
	}
	k, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("identity: read key %s: %w", path, err)
	}
	return k, nil
}

// open does not wait for the writer of a named pipe.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPEM+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPEM {
		return nil, fmt.Errorf("larger than %d KiB", maxPEM>>10)
	}
	return data, nil
}

// readPEMFile reads a public file of bounded size: a certificate or a request.
func readPEMFile(path string) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	data, err := readBounded(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// writeNew makes a file that was not there. A hard link, unlike a rename, never replaces: of two
// writers at once one gets fs.ErrExist. A crash in between can leave a file named .new-*, of the same
// mode, behind.
func writeNew(path string, data []byte, mode fs.FileMode) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		return err
	}
	if err := os.Remove(tmp.Name()); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// shellQuote makes a path that can be pasted after a command.
func shellQuote(s string) string {
	if shellSafe.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
