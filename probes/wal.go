package probes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// walAppend is what one run appends: about an etcd entry with a Kubernetes
	// object in it.
	walAppend = 2 << 10
	// walSize is the size of the probe's file; then it begins again in front.
	walSize = 1 << 20
)

// WAL measures what etcd's write-ahead log meets: it appends 2 KiB to a
// preallocated file on the datastore's filesystem and waits for fdatasync.
//
// etcd preallocates its segments without writing them, so each of its appends
// turns a piece of unwritten extent into a written one, which the fdatasync has
// to record. The probe gives its file's extents back as unwritten each time
// that it begins again, where the filesystem can; elsewhere it overwrites,
// which is a little cheaper than what etcd does.
//
// Not for concurrent use. A run cannot be interrupted.
type WAL struct {
	path string
	f    *os.File
	off  int64
	data []byte
}

// NewWAL makes a probe that writes dir/wal.probe, at most 1 MiB. Nothing is
// opened before the first run, so that a broken disk is a failed sample and not
// an agent that does not start.
func NewWAL(dir string) *WAL {
	w := &WAL{path: filepath.Join(dir, "wal.probe"), data: make([]byte, walAppend)}
	// Filesystems and disks that compress must not find it easy.
	x := uint32(time.Now().UnixNano()) | 1
	for i := range w.data {
		x = x*1664525 + 1013904223
		w.data[i] = byte(x >> 24)
	}
	return w
}

// Run appends once and returns how long the append and its fdatasync took.
// After an error the next run opens the file anew.
func (w *WAL) Run() (time.Duration, error) {
	if err := w.prepare(); err != nil {
		w.Close()
		return 0, err
	}
	begun := time.Now()
	if _, err := w.f.WriteAt(w.data, w.off); err != nil {
		w.Close()
		return 0, diskError("write", w.path, err)
	}
	if err := fdatasync(w.f); err != nil {
		w.Close()
		return 0, diskError("fdatasync", w.path, err)
	}
	took := time.Since(begun)
	w.off += walAppend
	return took, nil
}

// prepare opens and preallocates the file, outside of the measured time.
func (w *WAL) prepare() error {
	if w.f != nil && w.off < walSize {
		return nil
	}
	w.off = 0
	if w.f != nil {
		err := unix.Fallocate(int(w.f.Fd()), unix.FALLOC_FL_ZERO_RANGE, 0, walSize)
		if err != nil && !unsupported(err) {
			return diskError("preallocate", w.path, err)
		}
		return diskError("fsync", w.path, w.f.Sync())
	}
	// O_TRUNC: a file left by an older build may have another size.
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return diskError("open", w.path, err)
	}
	w.f = f
	if err := preallocate(f, walSize); err != nil {
		return diskError("preallocate", w.path, err)
	}
	return diskError("fsync", w.path, f.Sync())
}

// preallocate reserves size bytes, by writing zeros where the filesystem knows
// no other way.
func preallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if err == nil || !unsupported(err) {
		return err
	}
	_, err = f.WriteAt(make([]byte, size), 0)
	return err
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}

func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// Close closes the file; the next run would open it again.
func (w *WAL) Close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	if err != nil {
		return fmt.Errorf("probes: close %s: %w", w.path, err)
	}
	return nil
}
