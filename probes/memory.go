package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Memory is what this host may still use, in bytes.
type Memory struct{ Available, Total int64 }

// ReadMemory takes the smaller of the host's MemAvailable and, for each control
// group above this process, its limit minus what in it cannot be reclaimed.
// Inside a container procfs tells of the machine, while the group's limit is
// what kills (shirou/gopsutil#1758). No limit is "max" in version 2 and a huge
// number in version 1; a group without the file has none either.
//
// The groups are those of the calling process: a memory limit on the agent's
// own unit would be taken for the host's. Do not set one there.
func ReadMemory(root string) (Memory, error) {
	m, err := hostMemory(root)
	if err != nil {
		return Memory{}, err
	}
	groups, err := readGroups(root)
	if err != nil {
		return Memory{}, err
	}
	for _, g := range groups {
		for dir := g.path; ; dir = path.Dir(dir) {
			limit, used, err := g.read(filepath.Join(g.mount, dir))
			if err != nil {
				return Memory{}, fmt.Errorf("probes: memory: control group %s: %w", dir, err)
			}
			if limit >= 0 {
				m.Total = min(m.Total, limit)
				m.Available = min(m.Available, max(0, limit-used))
			}
			if dir == "/" {
				break
			}
		}
	}
	return m, nil
}

func hostMemory(root string) (Memory, error) {
	p := filepath.Join(root, "proc")
	proc, err := procfs.NewFS(p)
	if err != nil {
		return Memory{}, fmt.Errorf("probes: memory: %w", err)
	}
	info, err := proc.Meminfo()
	switch {
	case err != nil:
		return Memory{}, fmt.Errorf("probes: memory: %w", err)
	case info.MemTotalBytes == nil || *info.MemTotalBytes == 0:
		return Memory{}, fmt.Errorf("probes: memory: %s/meminfo has no MemTotal", p)
	case info.MemAvailableBytes == nil:
		return Memory{}, fmt.Errorf("probes: memory: %s/meminfo has no MemAvailable: it came with Linux 3.14", p)
	case *info.MemTotalBytes > math.MaxInt64 || *info.MemAvailableBytes > *info.MemTotalBytes:
		return Memory{}, fmt.Errorf("probes: memory: %s/meminfo has %d bytes available of %d", p, *info.MemAvailableBytes, *info.MemTotalBytes)
	}
	return Memory{Available: int64(*info.MemAvailableBytes), Total: int64(*info.MemTotalBytes)}, nil
}

// group is this process's place in one hierarchy that counts memory.
type group struct {
	mount, path  string
	limit, usage string   // file names
	reclaimable  []string // keys of memory.stat
}

// readGroups finds both versions: hosts in hybrid mode have the memory
// controller in version 1 and an empty version 2 beside it.
func readGroups(root string) ([]group, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a kernel without control groups
	}
	if err != nil {
		return nil, fmt.Errorf("probes: memory: %w", err)
	}
	mount := filepath.Join(root, "sys/fs/cgroup")
	var groups []group
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		// A group outside of this namespace's view begins with /..; what can be
		// seen of it begins at the root of the mount.
		where := path.Clean("/" + f[2])
		switch {
		case f[1] == "":
			groups = append(groups, group{mount, where, "memory.max", "memory.current",
				[]string{"inactive_file", "active_file", "slab_reclaimable"}})
		case strings.Contains(","+f[1]+",", ",memory,"):
			groups = append(groups, group{filepath.Join(mount, "memory"), where, "memory.limit_in_bytes", "memory.usage_in_bytes",
				[]string{"total_inactive_file", "total_active_file"}})
		}
	}
	return groups, nil
}

// noLimit is from where a version 1 limit means none; the kernel writes the
// largest multiple of a page, 2^63-4096 with the usual pages.
const noLimit = 1 << 62

// read gives limit -1 where the group has none.
func (g group) read(dir string) (limit, used int64, err error) {
	limit, err = readNumber(filepath.Join(dir, g.limit))
	switch {
	case err != nil:
		return 0, 0, err
	case limit < 0:
		return -1, 0, nil
	case limit == 0:
		return 0, 0, fmt.Errorf("%s allows 0 bytes", g.limit)
	}
	used, err = readNumber(filepath.Join(dir, g.usage))
	if err != nil {
		return 0, 0, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(stat)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, r := range g.reclaimable {
			if n, err := strconv.ParseInt(value, 10, 64); key == r && err == nil && n > 0 {
				used -= n
			}
		}
	}
	return limit, max(0, used), nil
}

// readNumber gives -1 for "max", for a missing file and for no limit.
func readNumber(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	s := strings.TrimSpace(string(b))
	if s == "max" {
		return -1, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s holds %.40q, want bytes or max", file, s)
	}
	if n >= noLimit {
		return -1, nil
	}
	return n, nil
}
