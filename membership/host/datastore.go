package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hasDatastore reports whether etcd would find a datastore in its directory. It
// is member.HasDatastore without the etcd server behind it.
func hasDatastore(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, "member"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("host: look for a datastore: %w", err)
	}
	defer f.Close()
	switch _, err := f.Readdirnames(1); {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("host: look for a datastore: %w", err)
	}
	return true, nil
}

// hasLog is false for what a first start leaves that was interrupted. Such a
// member has acknowledged nothing.
func hasLog(dir string) bool {
	entries, err := os.ReadDir(filepath.Join(dir, "member", "wal"))
	return err != nil && !errors.Is(err, fs.ErrNotExist) || // not known: leave it alone
		slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".wal") })
}

// errInUse means that a process has the datastore open.
var errInUse = errors.New("a process that the unit did not start has the datastore open")

// idle refuses while a process has the datastore open, whoever started it: etcd's
// database is under a lock that ends with its process.
func idle(dir string) error {
	f, err := os.Open(filepath.Join(dir, "member", "snap", "db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return failure(DatastoreInUse, "%w: %s: find the process with: fuser %s", errInUse, f.Name(), f.Name())
	}
	if err != nil {
		return fmt.Errorf("host: lock %s: %w", f.Name(), err)
	}
	return nil
}

// aside renames the datastore, if there is one, to a name that tells when and
// which member it was of.
func (s *Server) aside(member string) error {
	_, err := moveAside(s.files, s.o.Datastore, "removed", member)
	return err
}

// moveAside is aside for a datastore that is out of use for the reason given.
func moveAside(d files, dir, why, member string) (string, error) {
	if member == "" {
		member = "unknown"
	}
	has, err := hasDatastore(dir)
	if err != nil {
		return "", err
	}
	if !has {
		// Whoever moved it may have died before that was on the disk.
		return "", syncDirs(dir, filepath.Dir(dir))
	}
	if err := idle(dir); err != nil {
		return "", err
	}
	mark := fmt.Sprintf("%s-%s-%s", why, time.Now().UTC().Format("20060102T150405Z"), member)
	from, to := dir, dir+"."+mark
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		// A link to another place: what is renamed has to be there.
		from, to = filepath.Join(dir, "member"), filepath.Join(dir, mark)
	}
	d.at("move", "datastore")
	err = rename(from, to)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) { // a mount point
		to = filepath.Join(dir, mark)
		err = rename(filepath.Join(dir, "member"), to)
	}
	if err != nil {
		return "", fmt.Errorf("host: move the datastore aside: %w", err)
	}
	d.at("sync", "datastore")
	return to, syncDirs(dir, filepath.Dir(dir))
}

// rename never replaces what has the name already.
func rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // NFS
		if _, gone := os.Lstat(to); gone == nil {
			err = unix.EEXIST
		} else {
			err = unix.Rename(from, to)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func syncDirs(dirs ...string) error {
	var errs []error
	for _, d := range dirs {
		if err := syncDir(d); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// PutAside renames a datastore that no host's order is about, and gives its new
// name; none where there is no datastore. It is kept.
func PutAside(datastore string) (string, error) {
	return moveAside(files{}, datastore, "removed", "")
}
