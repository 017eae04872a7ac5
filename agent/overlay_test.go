package agent

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
)

func TestSeenPaths(t *testing.T) {
	direct := func(peer, via string) fitness.Path { return fitness.Path{Peer: peer, Kind: "direct", Via: via} }
	relayed := func(peer string) fitness.Path { return fitness.Path{Peer: peer, Kind: "relayed", Via: "lab1"} }
	since := func(p fitness.Path, at int64, before string) fitness.Path {
		p.Since, p.Before = at, before
		return p
	}
	seen := seenPaths{}
	for _, step := range []struct {
		why           string
		at            int64
		paths         []fitness.Path
		want, changed []fitness.Path
	}{
		{"the first look tells of nothing before", 10, []fitness.Path{direct("h2", "a"), relayed("h3")},
			[]fitness.Path{since(direct("h2", "a"), 10, ""), since(relayed("h3"), 10, "")}, nil},
		{"another address is the same kind", 20, []fitness.Path{direct("h2", "b"), relayed("h3")},
			[]fitness.Path{since(direct("h2", "b"), 10, ""), since(relayed("h3"), 10, "")}, nil},
		{"each changes", 30, []fitness.Path{relayed("h2"), direct("h3", "c")},
			[]fitness.Path{since(relayed("h2"), 30, "direct"), since(direct("h3", "c"), 30, "relayed")},
			[]fitness.Path{since(relayed("h2"), 30, "direct"), since(direct("h3", "c"), 30, "relayed")}},
		{"no traffic for a while", 40, nil, nil, nil},
		{"it is as it was", 50, []fitness.Path{relayed("h2")}, []fitness.Path{since(relayed("h2"), 30, "direct")}, nil},
		{"and back", 60, []fitness.Path{direct("h2", "a")}, []fitness.Path{since(direct("h2", "a"), 60, "relayed")},
			[]fitness.Path{since(direct("h2", "a"), 60, "relayed")}},
	} {
		changed := seen.take(step.paths, step.at)
		if diff := cmp.Diff(step.want, step.paths); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.why, diff)
		}
		if diff := cmp.Diff(step.changed, changed); diff != "" {
			t.Errorf("%s: changed: -want +got:\n%s", step.why, diff)
		}
	}
	seen.forget(map[string]netip.Addr{"h3": netip.MustParseAddr("100.64.0.3")})
	if got := maps.Collect(maps.All(seen)); len(got) != 1 || got["h3"].Peer != "h3" {
		t.Errorf("only h3 is in the roster: %v", got)
	}
}

// A daemon that says what Tailscale's does; the agent's report, log and metrics
// tell of its word.
func TestOverlayIsTold(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	var at atomic.Value // where h2 is reached directly
	at.Store("192.0.2.2:41641")
	var expires atomic.Value
	expires.Store(time.Now().Add(72 * time.Hour))
	o := f.options("h1")
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	o.Config.TailscaleSocket = l.Addr().String()
	daemon := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		type m = map[string]any
		json.NewEncoder(w).Encode(m{"BackendState": "Running", "Self": m{"KeyExpiry": expires.Load()}, "Peer": m{
			"nodekey:2": m{"TailscaleIPs": []netip.Addr{f.hosts["h2"].Address}, "CurAddr": at.Load(), "Relay": "lab1", "Active": true, "Online": true}}})
	})}
	go daemon.Serve(l)
	defer daemon.Close()

	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.api.Close()
	defer a.pages.Close()
	look := func() fitness.Report {
		t.Helper()
		if err := a.readOverlay(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		r := a.Report(0)
		if err := validate(&r, "h1", f.load(), 0); err != nil {
			t.Error(err)
		}
		return r
	}
	if r := look(); len(r.Facts.Paths) != 1 || r.Facts.Paths[0].String() != "direct at 192.0.2.2:41641" || r.Facts.OverlayNote != "" {
		t.Errorf("%+v", r.Facts)
	} else if left := time.Duration(r.Facts.OverlayExpires-r.Now) * time.Microsecond; left < 71*time.Hour || left > 72*time.Hour {
		t.Errorf("the key ends in %s", left)
	}
	at.Store("")
	if r := look(); len(r.Facts.Paths) != 1 || r.Facts.Paths[0].String() != "relayed through lab1, direct before" {
		t.Errorf("%+v", r.Facts)
	}
	if f.log.count(`msg="path changed" peer=h2 path="relayed through lab1, direct before"`) != 1 {
		t.Error(f.log.text.String())
	}
	for _, far := range []time.Time{{}, time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		expires.Store(far)
		look() // it can be used all the same
	}
}
