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
	"h7": netip.MustParseAddr("100.64.0.7"), "h8": netip.MustParseAddr("100.64.0.8"),
}

func TestReadOverlay(t *testing.T) {
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
	got, err := probes.ReadOverlay(t.Context(), socket, mesh)
	if err != nil {
		t.Fatal(err)
	}
	want := probes.Overlay{Paths: []fitness.Path{ // h5 is not active, h7 not in the tailnet, h8 away, the phone not a host
		{Peer: "h2", Kind: "direct", Via: "192.0.2.2:41641"}, // although Relay names its home relay
		{Peer: "h3", Kind: "relayed", Via: "fra"},
		{Peer: "h4", Kind: "direct", Via: "peer relay 192.0.2.9:7777:vni:1"},
	}, KeyExpires: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadOverlayWithoutAnAnswer(t *testing.T) {
	if _, err := probes.ReadOverlay(t.Context(), "/nowhere/s", mesh); !errors.Is(err, probes.ErrNoOverlay) {
		t.Errorf("%v, want ErrNoOverlay", err)
	}
	for _, tt := range []struct {
		why  string
		h    http.HandlerFunc
		want string
	}{
		{"logged out", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"BackendState":"NeedsLogin"}`) }, "NeedsLogin"},
		{"not allowed", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }, "permission denied"},
		{"broken", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "500"},
		{"nonsense", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }, "ask Tailscale"},
		{"an address that is none", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"BackendState":"Running","Peer":{"n":{"TailscaleIPs":["here"]}}}`)
		}, "ask Tailscale"},
		{"ends half way", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"BackendState":`)
		}, "unexpected EOF"},
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
		if _, err := probes.ReadOverlay(t.Context(), socket, mesh); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
	left := filepath.Join(t.TempDir(), "s") // of a daemon that was killed
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := probes.ReadOverlay(t.Context(), left, mesh); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	hung := daemon(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if _, err := probes.ReadOverlay(ctx, hung, mesh); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a hung daemon: %v, want the deadline", err)
	}
}
