package probes

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Filesystem is what lies under a directory.
type Filesystem struct {
	// Type is the kernel's name for it, such as ext4.
	Type string
	// Device is what is mounted, such as /dev/vda.
	Device string
	// Free is what a process without privileges may still write, in bytes.
	Free int64
}

// String is "ext4 on /dev/vda".
func (f Filesystem) String() string {
	if f.Type == "" {
		return ""
	}
	return f.Type + " on " + f.Device
}

// maxMounts bounds the mount table that is read: hosts with many containers
// have some thousand lines.
const maxMounts = 8 << 20

// ReadFilesystem asks for the filesystem under dir. It hangs where statfs does,
// on a network filesystem whose server is gone.
func ReadFilesystem(root, dir string) (Filesystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Filesystem{}, diskError("statfs", dir, err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Filesystem{}, diskError("resolve", dir, err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return Filesystem{}, diskError("resolve", dir, err)
	}
	path := filepath.Join(root, "proc/self/mountinfo")
	f, err := os.Open(path)
	if err != nil {
		return Filesystem{}, fmt.Errorf("probes: read mounts: %w", err)
	}
	defer f.Close()
	fs, err := parseMounts(io.LimitReader(f, maxMounts), real)
	if err != nil {
		return Filesystem{}, fmt.Errorf("probes: read mounts: %s: %w", path, err)
	}
	fs.Free = int64(min(st.Bavail*uint64(st.Bsize), 1<<62))
	return fs, nil
}

// parseMounts finds the mount with the longest mount point above path. The
// device number would be shorter, but btrfs does not give the same one to stat
// and to the mount table. Of two mounts on one point the later one covers.
func parseMounts(r io.Reader, path string) (Filesystem, error) {
	var fs Filesystem
	best := -1
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
		left, right, ok := strings.Cut(sc.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 2 {
			continue
		}
		if point := unescape.Replace(l[4]); len(point) >= best && under(path, point) {
			best, fs = len(point), Filesystem{Type: r[0], Device: unescape.Replace(r[1])}
		}
	}
	if err := sc.Err(); err != nil {
		return Filesystem{}, err
	}
	if best < 0 {
		return Filesystem{}, fmt.Errorf("no mount holds %s", path)
	}
	return fs, nil
}

func under(path, point string) bool {
	return point == "/" || path == point || strings.HasPrefix(path, point+"/")
}

// unescape undoes what the kernel does to blanks in the table (proc(5)).
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
