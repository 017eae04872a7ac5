package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/probes"
)

func TestAgentsMeasureEachOther(t *testing.T) {
	f := newTestFleet(t, "h1", "h2", "h3")
	for _, n := range f.names {
		f.start(f.options(n))
	}
	c := f.client("h3")
	var last fitness.Report
	eventually(t, "every series of h1 has samples", func() bool {
		r, err := c.Pull(t.Context(), "h1", 0)
		if err != nil {
			t.Fatal(err)
		}
		last = r
		for _, s := range r.Series {
			if len(s.Samples) < 10 {
				return false
			}
		}
		return len(r.Series) == 8 && probeOf(r, "overlay").OK && probeOf(r, "filesystem").OK
	})
	if last.Host != "h1" || last.Instance == "" || last.Software != "test" || last.Period.Std() != 20*time.Millisecond {
		t.Errorf("%+v", last)
	}
	for _, s := range last.Series {
		for _, m := range s.Samples[len(s.Samples)-3:] {
			if m.State == fitness.Failed || m.State == fitness.Measured && s.Signal != fitness.Clock && s.Signal != fitness.Stability && m.Value <= 0 {
				t.Errorf("%s %s: %+v", s.Signal, s.Peer, m)
			}
		}
	}
	facts := last.Facts
	if facts.Link.Device != "lo" || facts.Link.Class != fitness.Virtual || facts.MemoryTotal <= 0 || facts.DiskFree <= 0 || facts.Disk == "" {
		t.Errorf("facts: %+v", facts)
	}
	if facts.Member != nil || !probeOf(last, "member_metrics").OK {
		t.Errorf("a host without a member is a standby, and nothing is broken: %+v", facts)
	}
	if len(facts.Paths) != 0 || !strings.Contains(facts.OverlayNote, "no Tailscale here") {
		t.Errorf("no Tailscale: %v %q", facts.Paths, facts.OverlayNote)
	}

	next, err := c.Pull(t.Context(), "h1", last.Last)
	if err != nil || next.Instance != last.Instance {
		t.Fatal(next.Instance, err)
	}
	for _, s := range next.Series {
		if len(s.Samples) > 0 && s.Samples[0].Seq <= last.Last {
			t.Errorf("%s: sample %d was told before", s.Signal, s.Samples[0].Seq)
		}
	}
}

func TestKilledPeerIsLostUntilItIsBack(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	a := f.start(f.options("h1"))
	b := f.start(f.options("h2"))
	rtt := func() (s fitness.Series, run int) {
		s = series(a.Report(0), fitness.RTT, "h2")
		for i := len(s.Samples) - 1; i >= 0 && s.Samples[i].State == fitness.Lost; i-- {
			run++
		}
		return s, run
	}
	eventually(t, "h2 answers", func() bool { s, run := rtt(); return len(s.Samples) > 10 && run == 0 })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	eventually(t, "every ping is lost", func() bool { _, run := rtt(); return run > 10 })
	s, _ := rtt()
	if !strings.Contains(s.Error, "host h2") || !strings.Contains(s.Error, "refused") {
		t.Errorf("the series says %q, want the host and why", s.Error)
	}
	f.start(f.options("h2"))
	eventually(t, "h2 answers again", func() bool { s, run := rtt(); return run == 0 && s.Error == "" })
	if n := f.log.count("peer does not answer pings"); n != 1 {
		t.Errorf("%d log lines of the loss, want one", n)
	}
	if f.log.count("peer answers again") != 1 {
		t.Error("no log line of the return")
	}
	var before int64
	for _, m := range s.Samples {
		if before != 0 && m.At-before > time.Second.Microseconds() {
			t.Errorf("%d ms without a sample: lost pings are samples", (m.At-before)/1000)
		}
		before = m.At
	}
}

func TestWrongKeyIsALostPing(t *testing.T) {
	f := newTestFleet(t, "h1", "h2", "h3")
	// On h1, the roster has h3's key for h2.
	wrong := f.hosts["h2"]
	wrong.Fingerprint = f.keys["h3"].Fingerprint()
	path := filepath.Join(t.TempDir(), "roster.yaml")
	if err := os.WriteFile(path, []byte("hosts:\n"+f.hosts["h1"].Entry()+wrong.Entry()), 0o644); err != nil {
		t.Fatal(err)
	}
	f.start(f.options("h2"))
	o := f.options("h1")
	o.Roster = path
	a := f.start(o)
	eventually(t, "the ping is lost for its key", func() bool {
		s := series(a.Report(0), fitness.RTT, "h2")
		return len(s.Samples) > 3 && s.Samples[0].State == fitness.Lost && strings.Contains(s.Error, "showed the key")
	})
	roster, err := identity.LoadRoster(path)
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(f.keys["h1"], func() *identity.Roster { return roster })
	defer c.Close()
	_, err = c.Pull(t.Context(), "h2", 0)
	if w, ok := errors.AsType[*identity.WrongKeyError](err); !ok || w.Host.Name != "h2" {
		t.Errorf("%v, want a WrongKeyError about h2", err)
	}
}

func TestUnknownKeyIsRefused(t *testing.T) {
	f := newTestFleet(t, "h1", "h2", "stranger")
	f.write(f.roster, "h1", "h2")
	f.start(f.options("h1"))
	whole := filepath.Join(t.TempDir(), "roster.yaml")
	f.write(whole, "h1", "h2", "stranger")
	o := f.options("stranger")
	o.Roster = whole
	s := f.start(o)
	eventually(t, "the stranger is told that its key is not known", func() bool {
		return strings.Contains(series(s.Report(0), fitness.RTT, "h1").Error, "refused this host's key")
	})
	f.roster = whole
	c := f.client("stranger")
	_, err := c.Pull(t.Context(), "h1", 0)
	if r, ok := errors.AsType[*identity.RefusedError](err); !ok || r.Host.Name != "h1" {
		t.Errorf("%v, want a RefusedError", err)
	}
	eventually(t, "h1 logs who was refused", func() bool { return f.log.count("none of the roster's 2 hosts has") > 0 })
	if n := f.log.count("none of the roster's 2 hosts has"); n > 2 {
		t.Errorf("%d lines of it, want one per address that it came from", n)
	}
}

func TestRosterIsReadAgain(t *testing.T) {
	f := newTestFleet(t, "h1", "h2", "h3")
	f.write(f.roster, "h1", "h2")
	a := f.start(f.options("h1"))
	eventually(t, "h2 is pinged", func() bool { return len(series(a.Report(0), fitness.RTT, "h2").Samples) > 0 })
	f.write(f.roster, "h1", "h3")
	eventually(t, "h3 is pinged and h2 forgotten", func() bool {
		r := a.Report(0)
		return len(series(r, fitness.RTT, "h3").Samples) > 0 && series(r, fitness.RTT, "h2").Signal == ""
	})
	f.replace(f.roster, "hosts:\n- nam: h1\n")
	eventually(t, "the bad roster shows", func() bool {
		p := probeOf(a.Report(0), "roster")
		return !p.OK && strings.Contains(p.Error, `did you mean "name"`)
	})
	time.Sleep(500 * time.Millisecond) // it is looked at again meanwhile
	if n := f.log.count("the roster from before it stays"); n != 1 || probeOf(a.Report(0), "roster").OK {
		t.Errorf("%d log lines, want one, and it to stay broken", n)
	}
	if a.roster.Load().Len() != 2 || len(series(a.Report(0), fitness.RTT, "h3").Samples) == 0 {
		t.Error("the bad roster changed something")
	}
}

func TestNewRefuses(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	busy, err := net.Listen("tcp", f.hosts["h2"].AddrPort().String())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, tt := range []struct {
		why    string
		change func(*Options)
		want   string
	}{
		{"bad configuration", func(o *Options) { o.Config.Period = 0 }, "period: found 0s"},
		{"no directory", func(o *Options) { o.Config.Dir = "" }, "dir"},
		{"no roster", func(o *Options) { o.Roster += "x" }, "suffrage identity init"},
		{"not in the roster", func(o *Options) { o.Host = "h9" }, "h9, is not in it"},
		{"another host's key", func(o *Options) { o.Key = f.keys["h2"] }, "correct it in the roster"},
		{"the port is taken", func(o *Options) { o.Host, o.Key = "h2", f.keys["h2"] }, "is another agent running"},
		{"the metrics port is taken", func(o *Options) { o.Config.Metrics = busy.Addr().String() }, "agent.metrics"},
	} {
		o := f.options("h1")
		tt.change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}

func TestBrokenDiskIsNeverFine(t *testing.T) {
	f := newTestFleet(t, "h1")
	o := f.options("h1")
	o.Config.Dir = "/proc/suffrage" // where nobody can make a directory
	a := f.start(o)
	eventually(t, "both disk probes show as broken", func() bool {
		r := a.Report(0)
		for _, s := range []fitness.Signal{fitness.WALFsync, fitness.BackendCommit} {
			x := series(r, s, "")
			if len(x.Samples) < 3 || x.Samples[0].State != fitness.Failed || !strings.Contains(x.Error, "/proc/suffrage") || probeOf(r, string(s)).OK {
				return false
			}
		}
		return true
	})
	if page := get(t, a, "/metrics"); !strings.Contains(page, `suffrage_agent_probe_success{probe="wal_fsync"} 0`) {
		t.Error("the metric says that it works")
	}
	if n := f.log.count("probe fails"); n != 4 {
		t.Errorf("%d log lines, want one each for wal_fsync, backend_commit, stability and filesystem", n)
	}
}

func get(t *testing.T, a *running, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + a.pages.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + "\n" + string(b)
}

func TestPages(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	page, err := os.ReadFile("../probes/testdata/etcd-3.7.3-b.metrics")
	if err != nil {
		t.Fatal(err)
	}
	etcd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(page) }))
	defer etcd.Close()
	o := f.options("h1")
	o.Config.MemberMetrics = etcd.URL + "/metrics"
	a := f.start(o)
	f.start(f.options("h2"))
	defer http.DefaultClient.CloseIdleConnections()
	eventually(t, "ready", func() bool { return strings.HasPrefix(get(t, a, "/readyz"), "200") })
	if !strings.HasPrefix(get(t, a, "/livez"), "200") {
		t.Error("not live")
	}
	eventually(t, "a window is full, and the histogram was read for one", func() bool {
		r := a.Report(0)
		return len(series(r, fitness.RTT, "h2").Samples) > fitness.WindowSize && len(series(r, fitness.WALFsync, "").Bounds) > 0 &&
			len(series(r, fitness.WALFsync, "").Samples) > fitness.WindowSize &&
			len(series(r, fitness.Stability, "").Samples) > fitness.WindowSize && len(series(r, fitness.BackendCommit, "").Samples) > fitness.WindowSize
	})
	if m := a.Report(0).Facts.Member; m == nil || m.Started == 0 {
		t.Errorf("member %+v", m)
	}
	got := get(t, a, "/metrics")
	for _, want := range []string{
		`suffrage_agent_rtt_p99_seconds{peer="h2"} `, `suffrage_agent_wal_fsync_p99_seconds `, `suffrage_agent_backend_commit_p99_seconds `,
		`suffrage_agent_memory_available_min_bytes `, `suffrage_agent_stability_events_max 0`, `suffrage_agent_clock_offset_p50_seconds{peer="h2"} `,
		`suffrage_agent_window_samples{peer="h2",signal="rtt"} 100`, `suffrage_agent_sample_age_seconds{peer="",signal="memory"} `,
		`suffrage_agent_pings_lost_total{peer="h2"} `, `suffrage_agent_probe_success{probe="link"} 1`,
		`suffrage_agent_probe_duration_seconds{probe="member_metrics"} `, `suffrage_agent_tick_late_max_seconds `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	if docs, err := os.ReadFile("../docs/metrics.md"); err != nil {
		t.Error(err)
	} else {
		for _, m := range regexp.MustCompile(`# HELP (suffrage_agent_\S+)`).FindAllStringSubmatch(got, -1) {
			if !strings.Contains(string(docs), "`"+m[1]+"`") {
				t.Errorf("docs/metrics.md does not have %s", m[1])
			}
		}
	}
}

func TestMetricsPageThatIsNotEtcds(t *testing.T) {
	f := newTestFleet(t, "h1")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	o := f.options("h1")
	o.Config.MemberMetrics = other.URL + "/metrics"
	a := f.start(o)
	eventually(t, "it shows as broken, with the URL", func() bool {
		p := probeOf(a.Report(0), "member_metrics")
		return !p.OK && strings.Contains(p.Error, o.Config.MemberMetrics) && strings.Contains(p.Error, probes.ErrNotEtcd.Error())
	})
	if a.Report(0).Facts.Member != nil {
		t.Error("a page of another kind is no member")
	}
}

// TestHangingProbeDoesNotHoldTheAgent stops an agent whose disk hangs.
func TestHangingProbeDoesNotHoldTheAgent(t *testing.T) {
	f := newTestFleet(t, "h1")
	a, err := New(f.options("h1"))
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan bool)
	a.disks[0] = a.disk("wal_fsync", a.record.ring(fitness.WALFsync, ""), func() (time.Duration, error) { <-freed; return 0, nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	eventually(t, "the hang is seen, and the others go on", func() bool {
		r := a.Report(0)
		hung := r.Series[len(r.Series)-1]
		return len(hung.Samples) > 2 && hung.Samples[0].Value >= 0.5 && len(series(r, fitness.BackendCommit, "").Samples) > 10
	})
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "still hangs") {
		t.Errorf("%v, want it said", err)
	}
	close(freed)
}
