package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"suffrage/fitness"
	"suffrage/membership"
)

// script is the configuration of a host in these tests: what its processes play.
type script struct {
	Serve string // where the controller tells its decision
	// Slow is a file whose presence turns the decision from steady into a plan.
	Slow  string
	Crash string // the process that crashes: "h2 member"
	Host  string
}

// playHost is the role of every process of a played fleet.
func playHost(args []string) {
	if args[0] == "cluster" {
		return // created
	}
	b, err := os.ReadFile(args[2])
	fail(err)
	var s script
	fail(yaml.Unmarshal(b, &s))
	if s.Crash == s.Host+" "+args[0] {
		time.Sleep(300 * time.Millisecond)
		fail(errors.New("the disk is on fire"))
	}
	if args[0] != "controller" {
		time.Sleep(time.Hour)
	}
	fail(http.ListenAndServe(s.Serve, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Host != "h1" {
			http.Error(w, "this controller stands by", http.StatusServiceUnavailable)
			return
		}
		d := membership.Decision{Kind: membership.Steady, At: time.Now()}
		for _, h := range hosts(1, "") {
			d.Verdicts = append(d.Verdicts, fitness.Verdict{Host: h.Name, Status: fitness.Fit})
		}
		if _, err := os.Stat(s.Slow); err == nil {
			d.Kind, d.Plan = membership.Planned, &membership.Plan{Out: "h3", In: "h4", Why: "h3 is slow"}
		}
		writeDecision(w, d)
	})))
}

// safeBuffer may be written to while it is read.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func played(t *testing.T, crash string) (Options, *safeBuffer) {
	t.Helper()
	exe := as(t, "host")[0]
	said := &safeBuffer{}
	slow := filepath.Join(t.TempDir(), "slow")
	return Options{
		Program: exe,
		Dir:     filepath.Join(t.TempDir(), "fleet"),
		Slow:    map[string]time.Duration{"h3": 150 * time.Millisecond},
		Period:  minPeriod,
		Until:   UntilDecision,
		For:     time.Minute,
		Configure: func(f *Fleet, h Host) (any, error) {
			return script{Serve: at(h.Real, ControllerMetricsPort).String(), Slow: slow, Crash: crash, Host: h.Name}, nil
		},
		Mark:     func(context.Context, *Fleet) error { return nil },
		Hints:    func(*Fleet) string { os.WriteFile(slow, nil, 0o600); return "" },
		Progress: said,
		Width:    func() int { return 0 },
	}, said
}

func TestRunEndsWithThePlan(t *testing.T) {
	defer goleak.VerifyNone(t)
	o, said := played(t, "")
	// The hints are shown when nobody says when to end; here a person ends it.
	o.Until = UntilStopped
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := Run(ctx, o); done <- err }()
	eventually(t, "the plan is told", func() bool { return strings.Contains(said.String(), "would swap h3 → h4, because h3 is slow") })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Ctrl-C of a demo that runs until then is no failure: %v", err)
	}
	for _, want := range []string{"all fit", "127.0.", "now h3 is slow: 150ms", "standby"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it did not say %q:\n%s", want, said)
		}
	}

	// The file is there from the start now, so nothing is ever all fit. With no
	// host to make slow there is nothing to wait for.
	o.Until, o.Dir = UntilDecision, filepath.Join(t.TempDir(), "again")
	o.Slow = nil
	r, err := Run(t.Context(), o)
	d := r.Decision
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind != membership.Planned || d.Plan.Out != "h3" || d.Plan.In != "h4" {
		t.Errorf("ended with %s", line(d))
	}
}

func TestRunSaysWhatItEndedWithout(t *testing.T) {
	defer goleak.VerifyNone(t)
	o, _ := played(t, "")
	o.For = 4 * time.Second
	_, err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "within 4s") || !strings.Contains(err.Error(), "steady: nothing needs doing") {
		t.Errorf("got %v; want the time and the last decision", err)
	}
}

func TestRunReportsAProcessThatDied(t *testing.T) {
	defer goleak.VerifyNone(t)
	o, _ := played(t, "h2 member")
	_, err := Run(t.Context(), o)
	for _, want := range []string{"h2 member", "exit status 1", "the disk is on fire", filepath.Join(o.Dir, "h2", "member.log")} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestRunRemovesOnlyItsOwnTemporaryDirectory(t *testing.T) {
	for _, tc := range []struct {
		crash string
		keep  bool
		left  bool
		why   string
	}{
		{"", false, false, "nothing to look at"},
		{"", true, true, "--keep"},
		{"h1 agent", false, true, "the error names a log in it"},
	} {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		o, said := played(t, tc.crash)
		o.Dir, o.Keep, o.Until, o.Slow = "", tc.keep, UntilSteady, nil
		_, err := Run(t.Context(), o)
		if (err != nil) != (tc.crash != "") {
			t.Errorf("%s: %v", tc.why, err)
		}
		left, err := filepath.Glob(filepath.Join(temp, "suffrage-demo-*"))
		if err != nil || (len(left) > 0) != tc.left {
			t.Errorf("left %v, want something: %v (%s)", left, tc.left, tc.why)
		}
		if tc.left && !strings.Contains(said.String(), "kept in "+temp) {
			t.Errorf("it did not say what it kept:\n%s", said)
		}
	}
}

func TestRunRefusesBeforeItStarts(t *testing.T) {
	for _, tc := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Slow = map[string]time.Duration{"h9": 1} }, "h1, h2, h3, h4, h5"},
		{func(o *Options) { o.Slow = map[string]time.Duration{"h3": time.Hour} }, "30s"},
		{func(o *Options) { o.Period = time.Millisecond }, "10ms to 3s"},
		{func(o *Options) { o.Until = "dusk" }, "decision, steady or swap"},
		{func(o *Options) {
			o.SlowDisk = map[string]time.Duration{"h3": 1}
			o.SlowExec = []string{"/bin/sh", "-c", "echo no seccomp >&2; false"}
		}, "no seccomp"},
	} {
		o, _ := played(t, "")
		tc.change(&o)
		o.Progress = io.Discard
		_, err := Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q in it", err, tc.want)
		}
		if _, err := os.Stat(o.Dir); err == nil {
			t.Errorf("%s was made although nothing was to start", o.Dir)
		}
	}
}
