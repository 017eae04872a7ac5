package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Space is a file system of a host in memory that can be full. What becomes of
// writes then is the kernel's word, as with any other file system.
type Space struct{ at, filler string }

// spaceSize holds a datastore up to its quota, its log and its snapshots.
const spaceSize = 640 << 20

// MountSpace mounts it, Close takes it away.
func MountSpace(at string) (*Space, error) {
	if err := unix.Mount("suffrage-lab", at, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", spaceSize)); err != nil {
		return nil, fmt.Errorf("lab: mount a file system at %s: %w", at, err)
	}
	return &Space{at: at, filler: filepath.Join(at, "filler")}, nil
}

// Fill takes all that is left. Files can neither be made with content nor grow;
// what there is can be read and written over.
func (s *Space) Fill() error {
	f, err := os.OpenFile(s.filler, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("lab: fill: %w", err)
	}
	defer f.Close()
	var end int64
	for piece := int64(16 << 20); piece >= int64(os.Getpagesize()); {
		switch err := unix.Fallocate(int(f.Fd()), 0, end, piece); {
		case err == nil:
			end += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("lab: fill %s: %w", s.at, err)
		}
	}
	return nil
}

// Free gives it back.
func (s *Space) Free() error {
	if err := os.Remove(s.filler); err != nil {
		return fmt.Errorf("lab: free: %w", err)
	}
	return nil
}

// Close unmounts it.
func (s *Space) Close() error {
	if err := unix.Unmount(s.at, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("lab: unmount %s: %w", s.at, err)
	}
	return nil
}
