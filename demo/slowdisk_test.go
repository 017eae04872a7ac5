package demo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func needSlowDisk(t *testing.T) {
	t.Helper()
	if err := CheckSlowDisk(t.Context(), as(t, "slow-exec")); err != nil {
		t.Skip(err)
	}
}

// syncTimes runs the fsync role behind SlowExec and gives the time of each.
func syncTimes(t *testing.T, n int, delay time.Duration) []time.Duration {
	t.Helper()
	ours, its, err := slowPair()
	if err != nil {
		t.Fatal(err)
	}
	s := NewSupervisor()
	ctx, cancel := context.WithCancel(t.Context())
	supervised := make(chan error, 1)
	go func() { supervised <- s.Run(ctx) }()
	log := filepath.Join(t.TempDir(), "log")
	c, err := s.Start(ctx, Process{Name: "syncs", Args: as(t, "slow-exec", "fsync", strconv.Itoa(n)), Log: log, Files: []*os.File{its}})
	its.Close()
	if err != nil {
		t.Fatal(err)
	}
	disk, err := AcceptSlowDisk(ours)
	if err != nil {
		t.Fatal(err, c.Exit())
	}
	disk.Set(delay)
	if err := disk.Run(); err != nil { // ends with the process
		t.Error(err)
	}
	disk.Close()
	<-c.Ended()
	cancel()
	<-supervised
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	for _, f := range strings.Fields(string(b)) {
		us, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("the process said: %s", b)
		}
		times = append(times, time.Duration(us)*time.Microsecond)
	}
	if len(times) != n {
		t.Fatalf("%d times of %d: %s", len(times), n, b)
	}
	return times
}

func TestSlowDiskIsFeltByRealSyncs(t *testing.T) {
	defer goleak.VerifyNone(t)
	needSlowDisk(t)
	const delay = 80 * time.Millisecond
	for i, d := range syncTimes(t, 5, delay) {
		if d < delay {
			t.Errorf("fsync %d took %v, want at least the %v it is held back", i, d, delay)
		}
	}
	times := syncTimes(t, 200, 0)
	slices.Sort(times)
	t.Logf("with no delay: p50 %v p99 %v", times[100], times[198])
}

func TestSlowDiskSaysWhyItCannot(t *testing.T) {
	defer goleak.VerifyNone(t)
	err := CheckSlowDisk(t.Context(), []string{"/bin/sh", "-c", "echo no seccomp here >&2; exit 1"})
	if err == nil || !strings.Contains(err.Error(), "no seccomp here") {
		t.Errorf("got %v; want what the process said", err)
	}
}
