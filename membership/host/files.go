package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxFile bounds every file that is read here; ours have under 8 KiB.
const maxFile = 64 << 10

// files are the small JSON files of one directory. Each is replaced whole: after
// a crash there is the old one or the new one.
type files struct {
	path string
	// point, if any, is called before each system call that changes something.
	// Tests stop there.
	point func(what string)
}

func (d files) at(what, name string) {
	if d.point != nil {
		d.point(what + " " + name)
	}
}

func (d files) file(name string) string { return filepath.Join(d.path, name) }

// write returns when the file is on the disk under its name.
func (d files) write(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("host: write %s: %w", d.file(name), err)
	}
	return d.replace(name, append(data, '\n'))
}

// replace is write with the content given.
func (d files) replace(name string, data []byte) error {
	// One writer at a time, so the name can be fixed and no litter grows.
	temp := d.file("." + name + ".new")
	d.at("create", name)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("host: write: %w", err)
	}
	d.at("fill", name)
	_, err = f.Write(data)
	if err == nil {
		d.at("sync", name)
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("host: write %s: %w", d.file(name), err)
	}
	d.at("rename", name)
	if err := os.Rename(temp, d.file(name)); err != nil {
		return fmt.Errorf("host: write: %w", err)
	}
	return d.sync()
}

// read gives false where there is no such file.
func (d files) read(name string, v any) (bool, error) {
	f, err := os.OpenFile(d.file(name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("host: read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d KiB", maxFile>>10)
	}
	if err == nil {
		err = strict(data, v)
	}
	if err != nil {
		return true, fmt.Errorf("host: read %s: %w; suffrage alone writes it: look at what did, and at the disk", d.file(name), err)
	}
	return true, nil
}

// remove returns when the name is gone from the disk.
func (d files) remove(name string) error {
	d.at("remove", name)
	if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("host: %w", err)
	}
	return d.sync()
}

// sync makes the names in the directory outlast a power cut.
func (d files) sync() error {
	d.at("sync", "directory")
	return syncDir(d.path)
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("host: sync: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("host: sync %s: %w", path, err)
	}
	return nil
}

// lock keeps a start and a fence apart: a start is either counted before the
// fence or refused by it. The kernel ends it with the process.
func (d files) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(d.file(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("host: lock: %w", err)
	}
	return take(ctx, f)
}

const lockFile = "server.lock"

// take takes the lock on its file, which it closes where it does not get it.
func take(ctx context.Context, f *os.File) (unlock func(), err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			break
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("host: lock %s: another process holds it: %w", f.Name(), context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
	f.Close()
	return nil, fmt.Errorf("host: lock %s: %w", f.Name(), err)
}
