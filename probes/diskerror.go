package probes

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// diskError names the file and, for what an owner can act on, the next step.
func diskError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	for _, c := range []struct {
		is   error
		help string
	}{
		{syscall.ENOSPC, "free some space on that filesystem, or name a directory on another one"},
		{syscall.EDQUOT, "raise the quota of the user that the agent runs as"},
		{syscall.EFBIG, "raise the file size limit of the agent (ulimit -f, LimitFSIZE=)"},
		{syscall.EIO, "the disk reports errors: look at the kernel's log, and replace it"},
		{syscall.EROFS, "the filesystem is mounted read-only, often after a disk error: look at the kernel's log"},
		{syscall.EACCES, "let the user that the agent runs as write there"},
		{syscall.EPERM, "let the user that the agent runs as write there"},
		{syscall.ENOENT, "create the directory " + filepath.Dir(path)},
	} {
		if errors.Is(err, c.is) {
			return fmt.Errorf("probes: %s %s: %w: %s", op, path, c.is, c.help)
		}
	}
	return fmt.Errorf("probes: %s %s: %w", op, path, err)
}
