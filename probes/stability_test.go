package probes_test

import (
	"errors"
	"strings"
	"testing"

	"suffrage/probes"
)

func TestStability(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	const boot = "proc/sys/kernel/random/boot_id = "
	put(t, root, boot+`0393ab22-9e6e-4e3e-ad70-69414d48c857\n`)
	var restarts uint64 = 7
	var broken error
	counter := func() (uint64, error) { return restarts, broken }

	s := probes.NewStability(root, dir, counter)
	want := func(why string, n uint64) {
		t.Helper()
		if got, err := s.Sample(); err != nil || got != n {
			t.Errorf("%s: %d, %v, want %d", why, got, err, n)
		}
	}
	want("a host that was not watched before did not reboot, and old restarts do not count", 0)
	restarts += 2
	want("two restarts since", 2)
	want("they count once", 0)
	restarts++
	broken = errors.New("cannot tell")
	if _, err := s.Sample(); !errors.Is(err, broken) {
		t.Errorf("%v, want the counter's own error", err)
	}
	broken = nil
	want("a failed sample leaves its events to the next", 1)
	restarts = 0
	want("a counter that began again is no event by itself", 0)

	s = probes.NewStability(root, dir, counter)
	want("the agent's own restart is not the host's", 0)
	put(t, root, boot+`ffffffff-9e6e-4e3e-ad70-69414d48c857\n`)
	s = probes.NewStability(root, dir, counter)
	want("a reboot while the agent was down", 1)
	want("it counts once", 0)

	put(t, root, boot)
	s = probes.NewStability(root, dir)
	if _, err := s.Sample(); err == nil || !strings.Contains(err.Error(), "boot id") {
		t.Errorf("%v, want an error about the boot id", err)
	}
}
