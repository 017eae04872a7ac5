package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Counter is something that only grows while the machine is up, such as the
// number of restarts of the member. It returns an error when it cannot tell.
type Counter func() (uint64, error)

// Stability counts what happened to the host since the sample before: reboots,
// and whatever its counters count. Restarts of the agent itself are not the
// host's: reboots are told by the kernel's boot id, kept in a small file, and
// counters begin at what they show first.
//
// Not for concurrent use.
type Stability struct {
	root, file string
	counters   []Counter
	seen       []uint64
	known      []bool
	noted      bool // the file holds this boot's id
}

// NewStability makes a probe that keeps the boot id in dir/boot_id.
func NewStability(root, dir string, counters ...Counter) *Stability {
	return &Stability{
		root: root, file: filepath.Join(dir, "boot_id"), counters: counters,
		seen: make([]uint64, len(counters)), known: make([]bool, len(counters)),
	}
}

// Sample counts the events since the last Sample that did not fail. A failed
// one leaves everything to the next.
func (s *Stability) Sample() (events uint64, err error) {
	now := make([]uint64, len(s.counters))
	for i, c := range s.counters {
		if now[i], err = c(); err != nil {
			return 0, fmt.Errorf("probes: stability: %w", err)
		}
		// A counter that went back began again, which its own owner counts.
		if s.known[i] && now[i] > s.seen[i] {
			events += now[i] - s.seen[i]
		}
	}
	if !s.noted {
		rebooted, err := s.reboot()
		if err != nil {
			return 0, err
		}
		if rebooted {
			events++
		}
		s.noted = true
	}
	for i, n := range now {
		s.seen[i], s.known[i] = n, true
	}
	return events, nil
}

// reboot compares the boot id with the one in the file, and writes it there.
// No file means that this host was not watched before, not that it rebooted.
func (s *Stability) reboot() (bool, error) {
	b, err := os.ReadFile(filepath.Join(s.root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return false, fmt.Errorf("probes: stability: %w", err)
	}
	id := strings.TrimSpace(string(b))
	if id == "" || len(id) > 64 {
		return false, fmt.Errorf("probes: stability: the kernel's boot id is %.40q", id)
	}
	old, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, diskError("read", s.file, err)
	}
	before := strings.TrimSpace(string(old))
	if before == id {
		return false, nil
	}
	if err := replaceFile(s.file, id+"\n"); err != nil {
		return false, err
	}
	return before != "", nil
}

// replaceFile never leaves half a file: a crash in between leaves the old one.
func replaceFile(path, text string) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return diskError("write", path, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	return diskError("write", path, err)
}
