package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/probes"
)

// hostile listens as one of the hosts, with its true key, and answers with
// whatever it is told to.
func hostile(t *testing.T, f *testFleet, name string, protos []string, h http.HandlerFunc) (connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", f.hosts[name].AddrPort().String())
	if err != nil {
		t.Fatal(err)
	}
	roster := f.load()
	connections = new(atomic.Int64)
	srv := &http.Server{Handler: h, TLSConfig: identity.ServerTLS(f.keys[name], func() *identity.Roster { return roster }, protos...), Protocols: new(http.Protocols),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connections.Add(1)
			}
		}}
	srv.Protocols.SetHTTP2(protos[0] == "h2")
	srv.Protocols.SetHTTP1(protos[0] != "h2")
	ended := make(chan bool)
	go func() { srv.ServeTLS(l, "", ""); close(ended) }()
	t.Cleanup(func() { srv.Close(); <-ended })
	return connections
}

// honest is a report as an agent of h2 would make it.
func honest() fitness.Report {
	const now = 1_750_000_000_000_000
	r := fitness.Report{Version: fitness.ReportVersion, Host: "h2", Instance: "A", Software: "test", Now: now, Period: fitness.Duration(3 * time.Second), Last: 100}
	r.Facts.Link.Class = fitness.Wired
	r.Facts.Probes = []fitness.ProbeStatus{{Name: "memory", OK: true}}
	r.Facts.Member = &fitness.MemberFacts{Started: now - 1000}
	samples := []fitness.Sample{{Seq: 10, At: now - 2000, Value: .001}, {Seq: 20, At: now - 1000, State: fitness.Lost}, {Seq: 30, At: now, Value: .002, Late: .1}}
	r.Series = []fitness.Series{
		{Signal: fitness.RTT, Peer: "h1", Samples: samples},
		{Signal: fitness.Clock, Peer: "h1", Samples: []fitness.Sample{{Seq: 11, At: now, Value: -.5}}},
		{Signal: fitness.WALFsync, Samples: []fitness.Sample{{Seq: 12, At: now, State: fitness.Failed}},
			Bounds: []fitness.Bound{{At: now - 5, Lo: 0, Hi: .001, N: 100}, {At: now, Lo: 8.192, Hi: fitness.Inf, N: 100}}},
	}
	return r
}

func TestReportsThatAreNotBelieved(t *testing.T) {
	for _, tt := range []struct {
		why    string
		change func(*fitness.Report)
		want   string
	}{
		{"another version", func(r *fitness.Report) { r.Version = 2 }, "version 2, this build reads 1: run the same version"},
		{"another host's name", func(r *fitness.Report) { r.Host = "h3" }, `host "h3": correct host in its settings`},
		{"no instance", func(r *fitness.Report) { r.Instance = "" }, "instance"},
		{"an endless instance", func(r *fitness.Report) { r.Instance = strings.Repeat("x", 65) }, "instance"},
		{"no period", func(r *fitness.Report) { r.Period = 0 }, "period"},
		{"no clock", func(r *fitness.Report) { r.Now = -1 }, "clock"},
		{"a clock at the end of time", func(r *fitness.Report) { r.Now = math.MaxInt64 }, "clock"},
		{"a signal that is not known", func(r *fitness.Report) { r.Series[0].Signal = "mood" }, "not known"},
		{"a pair without a peer", func(r *fitness.Report) { r.Series[0].Peer = "" }, "needs a peer"},
		{"a host's signal with a peer", func(r *fitness.Report) { r.Series[2].Peer = "h1" }, "a host's has none"},
		{"a pair with itself", func(r *fitness.Report) { r.Series[0].Peer = "h2" }, "its own peer"},
		{"a peer that nobody knows", func(r *fitness.Report) { r.Series[0].Peer = "h9" }, "make the roster equal"},
		{"a series twice", func(r *fitness.Report) { r.Series = append(r.Series, r.Series[0]) }, "there twice"},
		{"too many series", func(r *fitness.Report) { r.Series = slices.Repeat(r.Series, 100) }, "300 series"},
		{"too many samples", func(r *fitness.Report) {
			r.Series[0].Samples = slices.Repeat(r.Series[0].Samples, 200)
		}, "600 samples"},
		{"samples out of order", func(r *fitness.Report) { slices.Reverse(r.Series[0].Samples) }, "out of order"},
		{"a sample twice", func(r *fitness.Report) { r.Series[0].Samples[1].Seq = 10 }, "out of order"},
		{"a sample beyond the last", func(r *fitness.Report) { r.Series[0].Samples[2].Seq = 101 }, "out of order"},
		{"a sample that was told before", func(r *fitness.Report) { r.Series[0].Samples[0].Seq = 5 }, "out of order after 5"},
		{"a sample from the future", func(r *fitness.Report) { r.Series[0].Samples[2].At += 2_000_000 }, "its time"},
		{"time that runs back", func(r *fitness.Report) { r.Series[0].Samples[1].At -= 5000 }, "its time"},
		{"a negative round trip", func(r *fitness.Report) { r.Series[0].Samples[0].Value = -1 }, "value -1"},
		{"negative lateness", func(r *fitness.Report) { r.Series[0].Samples[0].Late = -1 }, "late by -1"},
		{"a state that is not known", func(r *fitness.Report) { r.Series[0].Samples[0].State = "asleep" }, "state"},
		{"a lost fsync", func(r *fitness.Report) { r.Series[2].Samples[0].State = fitness.Lost }, "state"},
		{"a histogram upside down", func(r *fitness.Report) { r.Series[2].Bounds[0].Lo = 1 }, "histogram"},
		{"a histogram from the future", func(r *fitness.Report) { r.Series[2].Bounds[1].At += 2_000_000 }, "histogram"},
		{"too many readings of it", func(r *fitness.Report) { r.Series[2].Bounds = slices.Repeat(r.Series[2].Bounds[:1], 60) }, "60 readings"},
		{"an endless error", func(r *fitness.Report) { r.Series[0].Error = strings.Repeat("x", 5000) }, "error text"},
		{"a link class that is not known", func(r *fitness.Report) { r.Facts.Link.Class = "pigeon" }, "link class"},
		{"less than no memory", func(r *fitness.Report) { r.Facts.MemoryTotal = -1 }, "less than nothing"},
		{"a zone that would break a line", func(r *fitness.Report) { r.Facts.Zone = "a\nb" }, "zone"},
		{"a path that is not known", func(r *fitness.Report) { r.Facts.Paths = []fitness.Path{{Peer: "h1", Kind: "magic"}} }, "path kind"},
		{"a path from the future", func(r *fitness.Report) {
			r.Facts.Paths = []fitness.Path{{Peer: "h1", Kind: "direct", Since: r.Now + 5_000_000}}
		}, "a path since"},
		{"what a path cannot have been", func(r *fitness.Report) {
			r.Facts.Paths = []fitness.Path{{Peer: "h1", Kind: "direct", Before: "magic"}}
		}, "before it"},
		{"a key without end", func(r *fitness.Report) { r.Facts.OverlayExpires = 1 << 62 }, "its key of the overlay"},
		{"too many probes", func(r *fitness.Report) { r.Facts.Probes = slices.Repeat(r.Facts.Probes, 99) }, "99 probes"},
		{"an endless note", func(r *fitness.Report) { r.Facts.OverlayNote = strings.Repeat("x", 5000) }, "a text of"},
		{"a role that is not known", func(r *fitness.Report) { r.Facts.Server = &fitness.ServerFacts{Role: "king"} }, "role"},
		{"too many snapshots", func(r *fitness.Report) {
			r.Facts.Server = &fitness.ServerFacts{Role: "voter", Snapshots: make([]fitness.SnapshotFacts, 99)}
		}, "99 snapshots"},
		{"a snapshot's endless name", func(r *fitness.Report) {
			r.Facts.Server = &fitness.ServerFacts{Role: "voter", Snapshots: []fitness.SnapshotFacts{{File: strings.Repeat("x", 5000)}}}
		}, "a text of"},
		{"a member from the future", func(r *fitness.Report) { r.Facts.Member.Started = r.Now + 5_000_000 }, "member started"},
		{"a schedule beyond all schedules", func(r *fitness.Report) {
			r.Facts.ScheduledSnapshot = &fitness.ScheduledSnapshot{Next: r.Now + (49 * time.Hour).Microseconds()}
		}, "next scheduled snapshot"},
	} {
		f := newTestFleet(t, "h1", "h2")
		r := honest()
		if err := validate(&r, "h2", f.load(), 5); err != nil {
			t.Fatalf("the honest report: %v", err)
		}
		tt.change(&r)
		err := validate(&r, "h2", f.load(), 5)
		if i, ok := errors.AsType[*InvalidReportError](err); !ok || i.Host != "h2" || !strings.Contains(i.Reason, tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}

func TestHostileReplies(t *testing.T) {
	honestJSON, err := json.Marshal(honest())
	if err != nil {
		t.Fatal(err)
	}
	say := func(b string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, b) }
	}
	for _, tt := range []struct {
		why  string
		h    http.HandlerFunc
		want string
	}{
		{"NaN", say(strings.Replace(string(honestJSON), `"v":0.001`, `"v":NaN`, 1)), "invalid character 'N'"},
		{"a number beyond all", say(strings.Replace(string(honestJSON), `"v":0.001`, `"v":1e999`, 1)), "1e999"},
		{"truncated", say(string(honestJSON[:len(honestJSON)/2])), "unexpected EOF"},
		{"a second report behind", say(string(honestJSON) + string(honestJSON)), "more after its end"},
		{"nothing", say(""), "EOF"},
		{"HTML", say("<html>"), "invalid character '<'"},
		{"an error with a story", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "tea\npot"+strings.Repeat("t", 100_000), http.StatusTeapot)
		}, "it answers 418: tea pot"},
		{"a redirect elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.org/", http.StatusFound)
		}, "it answers 302"},
		{"without end", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"host":"`)
			for b := bytes.Repeat([]byte("x"), 1<<16); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}, "longer than 8388608 bytes"},
		{"endless headers", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
		}, "PROTOCOL_ERROR"},
	} {
		f := newTestFleet(t, "h1", "h2")
		hostile(t, f, "h2", []string{"h2"}, tt.h)
		_, err := f.client("h1").Pull(t.Context(), "h2", 0)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "host h2") {
			t.Errorf("%s: %v, want h2 and %q", tt.why, err, tt.want)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", tt.why, len(err.Error()))
		}
	}
}

func TestPullEndsWithItsContext(t *testing.T) {
	for why, h := range map[string]http.HandlerFunc{
		"no answer":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a slow body": func(w http.ResponseWriter, r *http.Request) { drip(w, r) },
	} {
		f := newTestFleet(t, "h1", "h2")
		hostile(t, f, "h2", []string{"h2"}, h)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := f.client("h1").Pull(ctx, "h2", 0)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "host h2") || !strings.Contains(err.Error(), "is the host awake") {
			t.Errorf("%s: %v, want the deadline, the host and the next step", why, err)
		}
	}
}

func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		fmt.Fprint(w, " ")
		w.(http.Flusher).Flush()
		time.Sleep(10 * time.Millisecond)
	}
}

func TestPullOfNobody(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	c := f.client("h1")
	if _, err := c.Pull(t.Context(), "h9", 0); err == nil || !strings.Contains(err.Error(), "h9") {
		t.Errorf("%v", err)
	}
	if _, err := c.Pull(t.Context(), "h2", 0); err == nil || !strings.Contains(err.Error(), "host h2") || !strings.Contains(err.Error(), "is the agent running there") {
		t.Errorf("nothing listens: %v", err)
	}
	hostile(t, f, "h2", []string{"http/1.1"}, func(http.ResponseWriter, *http.Request) {})
	if _, err := c.Pull(t.Context(), "h2", 0); err == nil || !strings.Contains(err.Error(), "is the port an agent's") {
		t.Errorf("no HTTP/2: %v", err)
	}
}

// A host that refuses this key sends an alert and closes. What is written meanwhile
// meets a closed connection, and that error alone would not say why.
func TestResetIsExplained(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	l, err := net.Listen("tcp", f.hosts["h2"].AddrPort().String())
	if err != nil {
		t.Fatal(err)
	}
	whole, without := f.load(), rosterOf(t, "h2")
	known := identity.ServerTLS(f.keys["h2"], func() *identity.Roster { return whole }, "h2")
	unknown := identity.ServerTLS(f.keys["h2"], func() *identity.Roster { return without }, "h2")
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for config := known; ; config = unknown {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			conn := tls.Server(raw, config)
			if conn.HandshakeContext(t.Context()) == nil {
				conn.Read(make([]byte, 1)) // so that the request is on its way
				raw.(*net.TCPConn).SetLinger(0)
			}
			raw.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	c := f.client("h1")
	_, err = c.Pull(t.Context(), "h2", 0)
	if r, ok := errors.AsType[*identity.RefusedError](err); !ok || r.Host.Name != "h2" {
		t.Errorf("%v, want a RefusedError about h2", err)
	}
}

func TestOneConnectionPerHost(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	var asked atomic.Value
	n := hostile(t, f, "h2", []string{"h2"}, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.RawQuery)
		json.NewEncoder(w).Encode(honest())
	})
	c := f.client("h1")
	for range 20 {
		if _, err := c.Pull(t.Context(), "h2", 9); err != nil {
			t.Fatal(err)
		}
	}
	if n.Load() != 1 || asked.Load() != "after=9" {
		t.Errorf("%d connections, query %q", n.Load(), asked.Load())
	}
}

func TestAPIRefusals(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	a := f.start(f.options("h2"))
	h := f.hosts["h2"]
	c := f.client("h1")
	for path, want := range map[string]int{"/v1/report?after=x": 400, "/v1/other": 404, "/v1/report?after=18446744073709551615": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+target(h)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	// Taken out of the roster, a host whose connection stands is refused.
	f.write(f.roster, "h2")
	eventually(t, "the roster is taken up", func() bool { return a.roster.Load().Len() == 1 })
	if _, err := c.Pull(t.Context(), "h2", 0); err == nil || !strings.Contains(err.Error(), "it answers 403") {
		t.Errorf("%v, want 403", err)
	}
}

// FuzzReport gives the client's checks whatever parses.
func FuzzReport(f *testing.F) {
	b, err := json.Marshal(honest())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":1,"host":"h2","instance":"x","now":1,"period":"1s","series":[{"signal":"clock","peer":"h1","samples":[{"n":1,"t":1,"v":-1e308}]}],"last":1}`))
	f.Add([]byte(`{"series":[{"bounds":[{"lo":"inf","hi":"inf"}]}]}`))
	roster := rosterOf(f, "h1", "h2")
	f.Fuzz(func(t *testing.T, b []byte) {
		var r fitness.Report
		if json.Unmarshal(b, &r) != nil || validate(&r, "h2", roster, 0) != nil {
			return
		}
		for _, s := range r.Series {
			fitness.Read(s, fitness.Context{Host: "h2", Now: time.UnixMicro(r.Now), Period: r.Period.Std()})
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("what was believed cannot be written again: %v", err)
		}
	})
}

func rosterOf(tb testing.TB, names ...string) *identity.Roster {
	tb.Helper()
	var hosts []identity.RosterHost
	for i, n := range names {
		key, err := identity.GenerateKey()
		if err != nil {
			tb.Fatal(err)
		}
		hosts = append(hosts, identity.RosterHost{Name: n, Address: netip.AddrFrom4([4]byte{127, 0, 78, byte(i + 1)}), Fingerprint: key.Fingerprint()})
	}
	r, err := identity.NewRoster(hosts)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// A kernel takes a connection for an agent that is frozen, and small packets make
// one on a path that drops large ones.
func TestPeerThatSaysNothing(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	l, err := net.Listen("tcp", f.hosts["h2"].AddrPort().String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = pingDialer{key: f.keys["h1"], self: f.hosts["h1"], host: f.hosts["h2"]}.dial(ctx)
	if want := "is its agent frozen, or does the path drop packets larger than its MTU?"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q in it", err, want)
	}
}

func TestPortIsTwoProtocols(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	f.start(f.options("h2"))
	d := pingDialer{key: f.keys["h1"], self: f.hosts["h1"], host: f.hosts["h2"]}
	conn, err := d.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(probes.Frame{Seq: 7}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if fr, err := probes.ReadFrame(conn, make([]byte, probes.FrameSize)); err != nil || !fr.Answer || fr.Seq != 7 {
		t.Errorf("%+v, %v", fr, err)
	}
	if _, err := f.client("h1").Pull(t.Context(), "h2", 0); err != nil {
		t.Errorf("the API on the same port: %v", err)
	}
	if got := conn.LocalAddr().(*net.TCPAddr).IP.String(); got != f.hosts["h1"].Address.String() {
		t.Errorf("pings leave from %s, want the mesh address", got)
	}
}
