package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// The version of K3s is told while it can be read, and not the one from before.
func TestTellsK3s(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	var gone atomic.Bool
	o := f.options("h2")
	o.K3s = func(context.Context) (string, error) {
		if gone.Load() {
			return "", errors.New("no such file")
		}
		return "v1.34.2+k3s1", nil
	}
	f.start(o)
	f.start(f.options("h1"))
	c := f.client("h1")
	told := func(host string) string {
		r, err := c.Pull(t.Context(), host, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r.Facts.K3s
	}
	eventually(t, "its version", func() bool { return told("h2") == "v1.34.2+k3s1" })
	gone.Store(true)
	eventually(t, "none once it cannot be read", func() bool { return told("h2") == "" })
	if v := told("h1"); v != "" {
		t.Errorf("of a host without K3s: %q", v)
	}
}
