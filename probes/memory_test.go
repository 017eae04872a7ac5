package probes_test

import (
	"strings"
	"testing"

	"suffrage/probes"
)

func TestReadMemory(t *testing.T) {
	const gib = int64(1 << 30)
	for _, tt := range []struct {
		file string
		why  string
		want probes.Memory
	}{
		{"host.tree", "no limit is the host's own figures", probes.Memory{Available: 6000000 << 10, Total: 8000000 << 10}},
		{"container-v2.tree", "4 GiB minus the 3 GiB used, of which 2073741824 bytes can be reclaimed",
			probes.Memory{Available: 4*gib - (3*gib - 2073741824), Total: 4 * gib}},
		{"container-v1.tree", "2 GiB minus the 1 GiB used, of which half can be reclaimed; the own group's total, not its children's",
			probes.Memory{Available: 2*gib - gib/2, Total: 2 * gib}},
	} {
		got, err := probes.ReadMemory(plant(t, tt.file))
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v: %s", tt.file, got, err, tt.want, tt.why)
		}
	}
}

func TestReadMemoryRefuses(t *testing.T) {
	for _, tt := range []struct{ why, line, want string }{
		{"zero total is an error, not nothing available", `proc/meminfo = MemTotal: 0 kB\nMemAvailable: 0 kB\n`, "MemTotal"},
		{"an old kernel", `proc/meminfo = MemTotal: 100 kB\nMemFree: 3 kB\n`, "MemAvailable"},
		{"more available than there is", `proc/meminfo = MemTotal: 100 kB\nMemAvailable: 101 kB\n`, "available of"},
		{"not a number", `proc/meminfo = MemTotal: x kB\n`, "memory"},
		{"no procfs", `proc/other = x`, "meminfo"},
		{"a limit that is no number", "sys/fs/cgroup/memory/memory.limit_in_bytes = lots\\n", "bytes or max"},
		{"a limit of nothing", "sys/fs/cgroup/memory/memory.limit_in_bytes = 0\\n", "0 bytes"},
	} {
		root := t.TempDir()
		if strings.HasPrefix(tt.line, "sys") {
			root = plant(t, "container-v1.tree")
		}
		put(t, root, tt.line)
		if m, err := probes.ReadMemory(root); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v, want %q in the error", tt.why, m, err, tt.want)
		}
	}
}

func TestReadMemoryHere(t *testing.T) {
	m, err := probes.ReadMemory("/")
	if err != nil || m.Total < 1<<26 || m.Available <= 0 || m.Available > m.Total {
		t.Errorf("%+v, %v", m, err)
	}
}

func BenchmarkReadMemory(b *testing.B) {
	for b.Loop() {
		if _, err := probes.ReadMemory("/"); err != nil {
			b.Fatal(err)
		}
	}
}
