package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"suffrage/demo"
)

// supervised runs a supervisor until the test ends.
func supervised(t *testing.T) *demo.Supervisor {
	s := demo.NewSupervisor()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// A frozen host does nothing and comes back as it was; one without power has no
// process any more, and can be switched on again.
func TestHost(t *testing.T) {
	n := network(t, 2)
	s := supervised(t)
	host := func(number int) *Host {
		h, err := NewHost(n, s, number, filepath.Join(t.TempDir(), fmt.Sprintf("h%d", number)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		return h
	}
	other, h := host(1), host(2)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := h.Run(t.Context(), "cat", "/proc/net/fib_trie")
	must(err)
	if !strings.Contains(out, Address(2).String()) || strings.Contains(out, Address(1).String()) {
		t.Errorf("h2 has these addresses:\n%s", out)
	}
	ticks := func(h *Host) string { return filepath.Join(h.Dir, "ticks") }
	sizeOn := func(h *Host) int64 {
		i, err := os.Stat(ticks(h))
		if err != nil {
			return 0
		}
		return i.Size()
	}
	size := func() int64 { return sizeOn(h) }
	startOn := func(h *Host) *demo.Child {
		t.Helper()
		c, err := h.Start(t.Context(), "ticker", "sh", "-c", "while :; do echo x >>"+ticks(h)+"; sleep 0.01; done")
		must(err)
		return c
	}
	start := func() *demo.Child { return startOn(h) }
	c := start()
	startOn(other)
	until(t, "both tick", func() bool { return size() > 0 && sizeOn(other) > 0 })
	must(h.Freeze())
	frozen, beside := size(), sizeOn(other)
	// As long as that takes, the frozen one would have gone on as far.
	until(t, "the other one ticks on", func() bool { return sizeOn(other) > beside+100 })
	if size() != frozen {
		t.Error("it goes on, frozen")
	}
	must(h.Thaw())
	until(t, "it ticks again", func() bool { return size() > frozen })
	must(h.Freeze())
	must(h.Kill())
	<-c.Ended()
	must(h.Thaw())
	off := size()
	start()
	until(t, "it ticks after another start", func() bool { return size() > off })
}
