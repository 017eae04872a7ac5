package probes_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
	"suffrage/probes"
)

// daemon answers as Tailscale's does, on a socket of its own.
func daemon(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return socket
}

var mesh = map[string]netip.Addr{
	"h2": netip.MustParseAddr("100.64.0.2"), "h3": netip.MustParseAddr("100.64.0.3"),
	"h4": netip.MustParseAddr("100.64.0.4"), "h5": netip.MustParseAddr("100.64.0.5"),
	"h7": netip.MustParseAddr("100.64.0.7"),
}

func TestReadPaths(t *testing.T) {
	status, err := os.ReadFile("testdata/tailscale-status.json")
	if err != nil {
		t.Fatal(err)
	}
	socket := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/localapi/v0/status" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Write(status)
	})
	got, err := probes.ReadPaths(t.Context(), socket, mesh)
	if err != nil {
		t.Fatal(err)
	}
	want := []fitness.Path{ // h5 is not active, h7 not in the tailnet, the phone not a host
		{Peer: "h2", Kind: "direct", Via: "192.0.2.2:41641"}, // although Relay names its home relay
		{Peer: "h3", Kind: "relayed", Via: "fra"},
		{Peer: "h4", Kind: "direct", Via: "peer relay 192.0.2.9:7777:vni:1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadPathsWithoutAnAnswer(t *testing.T) {
	if _, err := probes.ReadPaths(t.Context(), "/nowhere/s", mesh); !errors.Is(err, probes.ErrNoOverlay) {
		t.Errorf("%v, want ErrNoOverlay", err)
	}
	for _, tt := range []struct {
		why  string
		h    http.HandlerFunc
		want string
	}{
		{"logged out", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"BackendState":"NeedsLogin"}`) }, "NeedsLogin"},
		{"not allowed", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }, "overlay"},
		{"nonsense", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }, "overlay"},
		{"without end", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"BackendState":"`)
			for b := make([]byte, 1<<20); ; {
				for i := range b {
					b[i] = 'x'
				}
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}, "longer than"},
	} {
		socket := daemon(t, tt.h)
		if _, err := probes.ReadPaths(t.Context(), socket, mesh); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	hung := daemon(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if _, err := probes.ReadPaths(ctx, hung, mesh); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a hung daemon: %v, want the deadline", err)
	}
}
