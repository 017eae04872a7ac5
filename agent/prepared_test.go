package agent

import (
	"context"
	"strings"
	"testing"

	"suffrage/fitness"
)

// A host is not prepared until its agent has looked, and what it lacks is told
// within bounds.
func TestPrepared(t *testing.T) {
	f := newTestFleet(t, "h1", "h2", "h3")
	look, lacks := make(chan struct{}), []string{"unit suffrage-member.service is missing:\nnot installed", strings.Repeat("x", 3*maxText)}
	o := f.options("h2")
	o.Lacks = func(ctx context.Context) []string {
		select {
		case <-look:
		case <-ctx.Done():
		}
		return lacks
	}
	f.start(o)
	o = f.options("h3")
	o.Lacks = func(context.Context) []string { return nil }
	f.start(o)
	c := f.client("h1")
	prepared := func(host string) *fitness.Preparation {
		r, err := c.Pull(t.Context(), host, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r.Facts.Prepared
	}
	if p := prepared("h2"); p == nil || p.Ready || len(p.Lacks) != 1 {
		t.Errorf("before it has looked: %+v", p)
	}
	close(look)
	eventually(t, "what it lacks", func() bool {
		p := prepared("h2")
		return !p.Ready && len(p.Lacks) == 2 && strings.HasSuffix(p.Lacks[0], "is missing: not installed") && len(p.Lacks[1]) < 2*maxText
	})
	eventually(t, "it lacks nothing", func() bool { p := prepared("h3"); return p.Ready && len(p.Lacks) == 0 })
	f.start(f.options("h1"))
	if p := prepared("h1"); p != nil {
		t.Errorf("of one that does not look: %+v", p)
	}
}
