package k3s_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"suffrage/membership/host"
	"suffrage/mesh-tests/k3s"
)

// TestUnit is how a host's unit starts k3s again, and what it respects. What it
// runs here ends at once: there is nothing to start from.
func TestUnit(t *testing.T) {
	f := &fleet{k3s.Empty(t, k3s.Options{}), t}
	if !f.Double {
		t.Skip("SKIPPED: K3s starts with SQLite")
	}
	h := f.Add("h1")
	f.Configure(h, "")
	h.Restart, h.Fence = 50*time.Millisecond, t.TempDir()
	starts := func() int {
		s, err := h.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Starts
	}

	f.Start(h)
	f.Wait("it is started again and again", func(context.Context) error {
		if n := starts(); n < 3 {
			return fmt.Errorf("%d starts", n)
		}
		return nil
	})
	f.WaitLog(h, "SQLite") // which the double does not have, nor pretends to

	fence := filepath.Join(h.Fence, "fence.json")
	if err := os.WriteFile(fence, []byte("unreadable is a fence too"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.WaitExit(h)
	if err := h.Start(t.Context()); !errors.Is(err, host.ErrFenced) {
		t.Errorf("behind the fence: %v", err)
	}
	if err := os.Remove(fence); err != nil {
		t.Fatal(err)
	}

	f.Stop(h)
	n := starts()
	time.Sleep(4 * h.Restart) // long enough for what must not come
	if now := starts(); now != n {
		t.Errorf("it was stopped, and started %d times more", now-n)
	}
}
