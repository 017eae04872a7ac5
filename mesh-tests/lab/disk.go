package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Disk is a file system that passes everything through to a directory, and takes
// as long for each fsync of a file as it is told; those of directories are rare
// and are not held back. It is served by the tests' process, so
// the longer an fsync is, the less that adds.
type Disk struct {
	server *fuse.Server

	mu   sync.Mutex
	slow map[string]time.Duration // by the beginning of a path
}

// MountDisk mounts it. Close takes it away, which what is still open prevents.
func MountDisk(backing, at string) (*Disk, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(backing, &st); err != nil {
		return nil, fmt.Errorf("lab: disk: %s: %w", backing, err)
	}
	d := &Disk{slow: map[string]time.Duration{}}
	root := &fs.LoopbackRoot{Path: backing, Dev: uint64(st.Dev)}
	top := &onDisk{&fs.LoopbackNode{RootData: root}, d}
	root.RootNode = top
	// No process is started before the connection is ours alone.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var err error
	d.server, err = fs.Mount(at, top, &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, // no helper program is needed
		MaxWrite:          1 << 20,
		FsName:            backing,
		Name:              "suffrage-lab",
	}})
	if err != nil {
		return nil, fmt.Errorf("lab: mount a disk at %s: %w", at, err)
	}
	return d, keepConnections()
}

// keepConnections has no process inherit our ends of FUSE connections: go-fuse
// leaves them open for all. One that has a file open there, and the last such
// end, could not be killed: it would wait for an answer from nobody.
func keepConnections() error {
	const dir = "/proc/self/fd"
	open, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for _, f := range open {
		if to, _ := os.Readlink(filepath.Join(dir, f.Name())); to != "/dev/fuse" { // what is closed by now is none
			continue
		}
		fd, err := strconv.Atoi(f.Name())
		if err != nil {
			return fmt.Errorf("lab: %s: %w", dir, err)
		}
		syscall.CloseOnExec(fd)
	}
	return nil
}

// Slow has each fsync that begins from now on take at least this long, 0 for as
// long as it takes: of files whose path on the disk begins so, "" for all. The
// longest beginning that was ever named counts.
func (d *Disk) Slow(begins string, floor time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow[begins] = floor
}

// floor is how long an fsync of a file takes at least.
func (d *Disk) floor(path string) (f time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	longest := -1
	for begins, floor := range d.slow {
		if strings.HasPrefix(path, begins) && len(begins) > longest {
			longest, f = len(begins), floor
		}
	}
	return f
}

// Close unmounts it.
func (d *Disk) Close() error {
	if err := d.server.Unmount(); err != nil {
		return fmt.Errorf("lab: unmount: %w", err)
	}
	return nil
}

// onDisk is a file or directory of a Disk.
type onDisk struct {
	*fs.LoopbackNode
	disk *Disk
}

var (
	_ fs.NodeWrapChilder = (*onDisk)(nil)
	_ fs.NodeFsyncer     = (*onDisk)(nil)
)

func (n *onDisk) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &onDisk{child.(*fs.LoopbackNode), n.disk}
}

// Fsync syncs for real, and then waits for what is left of the floor.
func (n *onDisk) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	began := time.Now()
	file, ok := f.(fs.FileFsyncer)
	if !ok {
		return syscall.EINVAL
	}
	errno := file.Fsync(ctx, flags)
	time.Sleep(n.disk.floor(n.EmbeddedInode().Path(nil)) - time.Since(began))
	return errno
}
