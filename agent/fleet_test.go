package agent

import (
	"context"
	"errors"
	"fmt"

	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/fitness"
	"suffrage/identity"
)

// testFleet is some hosts on loopback addresses of their own, with keys and a
// roster file. Their agents are started and stopped by the tests.
type testFleet struct {
	t      *testing.T
	names  []string
	keys   map[string]*identity.Key
	hosts  map[string]identity.RosterHost
	roster string
	log    *lines
}

// running is an agent that runs.
type running struct {
	*Agent
	stop func() error
}

func newTestFleet(t *testing.T, names ...string) *testFleet {
	t.Helper()
	f := &testFleet{t: t, names: names, keys: map[string]*identity.Key{}, hosts: map[string]identity.RosterHost{}, log: &lines{}}
	for i, n := range names {
		key, err := identity.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		// A port that is free on this address now, and hardly taken soon.
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.77.%d:0", i+1))
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		l.Close()
		f.keys[n] = key
		f.hosts[n] = identity.RosterHost{Name: n, Address: at.Addr(), Port: at.Port(), Fingerprint: key.Fingerprint()}
	}
	f.roster = filepath.Join(t.TempDir(), "roster.yaml")
	f.write(f.roster, names...)
	return f
}

// write makes a roster file of some of the hosts.
func (f *testFleet) write(path string, names ...string) {
	f.t.Helper()
	text := "hosts:\n"
	for _, n := range names {
		text += f.hosts[n].Entry()
	}
	f.replace(path, text)
}

// replace writes a file at once: an agent that looks at it meanwhile sees the one
// from before, and not an empty one.
func (f *testFleet) replace(path, text string) {
	f.t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o644), os.Rename(path+".new", path)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *testFleet) load() *identity.Roster {
	f.t.Helper()
	r, err := identity.LoadRoster(f.roster)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// options are those of one host's agent, fast.
func (f *testFleet) options(name string) Options {
	c := DefaultConfig()
	c.Metrics = "127.0.0.1:0"
	c.Period = fitness.Duration(20 * time.Millisecond)
	c.PingTimeout = fitness.Duration(400 * time.Millisecond)
	c.Dir = filepath.Join(f.t.TempDir(), "probes")
	c.MemberMetrics = "http://127.0.77.99:1/metrics"
	c.TailscaleSocket = filepath.Join(f.t.TempDir(), "none")
	return Options{Config: c, Host: name, Key: f.keys[name], Roster: f.roster, Software: "test",
		Log: slog.New(slog.NewTextHandler(f.log, nil)), Registry: prometheus.NewRegistry()}
}

func (f *testFleet) start(o Options) *running {
	f.t.Helper()
	a, err := New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stopped := false
	r := &running{Agent: a}
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	f.t.Cleanup(func() {
		if err := r.stop(); err != nil {
			f.t.Error(err)
		}
	})
	return r
}

// client pulls as one of the hosts.
func (f *testFleet) client(name string) *Client {
	roster := f.load()
	c := NewClient(f.keys[name], func() *identity.Roster { return roster })
	f.t.Cleanup(c.Close)
	return c
}

// eventually waits for a condition, generously.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func series(r fitness.Report, s fitness.Signal, peer string) fitness.Series {
	for _, x := range r.Series {
		if x.Signal == s && x.Peer == peer {
			return x
		}
	}
	return fitness.Series{}
}

func probeOf(r fitness.Report, name string) fitness.ProbeStatus {
	for _, p := range r.Facts.Probes {
		if p.Name == name {
			return p
		}
	}
	return fitness.ProbeStatus{}
}

// lines keeps what is logged.
type lines struct{ text safeBuffer }

func (l *lines) Write(b []byte) (int, error) { return l.text.Write(b) }

func (l *lines) count(part string) int { return strings.Count(l.text.String(), part) }

type safeBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
