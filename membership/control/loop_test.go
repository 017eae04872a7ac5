package control

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"suffrage/fitness"
	"suffrage/membership"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a loop at work on a played fleet.
type running struct {
	*testFleet
	loop *Loop
	logs *bytes.Buffer
	dir  string
	reg  *prometheus.Registry
}

// start runs a loop over the fleet until the test ends. Call it in a bubble.
func start(t *testing.T, f *testFleet) *running {
	t.Helper()
	r := prepare(t, f)
	r.run(t)
	return r
}

func prepare(t *testing.T, f *testFleet) *running {
	r := &running{testFleet: f, logs: &bytes.Buffer{}, dir: filepath.Join(t.TempDir(), "decisions"), reg: prometheus.NewRegistry()}
	r.loop = &Loop{Gatherer: f.gatherer(), Round: f.period, Recorder: &Recorder{Dir: r.dir, MaxFiles: 100, MaxBytes: 100 << 20},
		Log: slog.New(slog.NewTextHandler(r.logs, nil))}
	NewMetrics(r.reg, r.loop)
	return r
}

func (r *running) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v, want the context's end", err)
		}
		if r.loop.Last() != nil || r.loop.Leading() {
			t.Error("a loop that ended still shows a decision")
		}
	})
}

// after lets time pass and gives the newest decision.
func (r *running) after(d time.Duration) membership.Decision {
	time.Sleep(d)
	synctest.Wait()
	return r.loop.Last().Decision
}

// said is a decision as one line, for comparing.
func said(d membership.Decision) string { return d.Key() }

const period = 3 * time.Second

// A window of 100 samples, and what "for a whole window" means.
const (
	window = fitness.WindowSize * period
	whole  = fitness.Whole * period
)

func TestLoopFillsWindowsThenSaysSteadyThenPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		r := start(t, f)
		if got := said(r.after(window / 2)); got != "refused samples-missing(h1) samples-missing(h2) samples-missing(h3)" {
			t.Errorf("half a window in: %s", got)
		}
		if got := said(r.after(window)); got != "steady" {
			t.Errorf("with full windows: %s", got)
		}
		f.do(func() { f.slow["h3"] = time.Now() })
		if got := said(r.after(window)); got != "refused not-held(h3)" {
			t.Errorf("slow for one window: %s, want to wait for a whole one", got)
		}
		d := r.after(window + 10*period)
		if got := said(d); got != "plan h3>h4" {
			t.Fatalf("slow for a whole window: %s\n%v", got, d.Refusals)
		}
		since := d.Since
		if d = r.after(10 * period); !d.Since.Equal(since) {
			t.Errorf("Since moved from %s to %s while the plan stayed", since, d.Since)
		}
		// One line per change, not one per round.
		if n := strings.Count(r.logs.String(), "decision changed"); n != 4 {
			t.Errorf("%d log lines for 4 changes:\n%s", n, r.logs)
		}
		if !strings.Contains(r.logs.String(), "rtt to h1 p99 150 ms, limit 100 ms") {
			t.Errorf("the log line of the plan lacks its figures:\n%s", r.logs)
		}
		if got := testutil.ToFloat64(r.loop.Metrics.changes); got != 4 {
			t.Errorf("decision_changes_total %v, want 4", got)
		}
		replayed(t, r.dir, []string{"refused samples-missing(h1) samples-missing(h2) samples-missing(h3)", "steady", "refused not-held(h3)", "plan h3>h4"})
	})
}

// replayed decides again from the records.
func replayed(t *testing.T, dir string, want []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		in, err := membership.ReadInputs(data)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		got = append(got, said(membership.Decide(in)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decided again from the records (-want +got):\n%s", diff)
	}
}

func TestHungAgentDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		r := start(t, f)
		r.after(2 * window)
		f.do(func() { f.away["h2"] = "hang" })
		d := r.after(3 * period)
		if got := said(d); got != "refused voter-not-responding(h2)" {
			t.Errorf("one agent hangs: %s", got)
		}
		if took := r.loop.Last().Took; took != 2*time.Second {
			t.Errorf("the round took %s, want the timeout of one host", took)
		}
		for _, v := range d.Verdicts {
			if v.Host != "h2" && v.Status != fitness.Fit {
				t.Errorf("%s is %s beside a host that hangs", v.Host, v.Status)
			}
		}
		if got := said(r.after(2 * window)); got != "refused voter-down(h2)" {
			t.Errorf("away for two windows: %s, want the owner's case", got)
		}
		f.do(func() { delete(f.away, "h2") })
		if got := said(r.after(2 * whole)); got != "steady" {
			t.Errorf("back again: %s", got)
		}
	})
}

// A host whose clock is an hour off is judged like any other: its report is
// shifted by the difference, and no two clocks are compared.
func TestClocksOfHostsDoNotMatter(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := newTestFleet(period, 3, 2)
			f.skew["h3"] = skew
			r := start(t, f)
			if got := said(r.after(2 * window)); got != "steady" {
				t.Errorf("clock off by %s: %s", skew, got)
			}
			f.do(func() { f.slow["h3"] = time.Now() })
			if got := said(r.after(whole + 10*period)); got != "plan h3>h4" {
				t.Errorf("clock off by %s and slow: %s", skew, got)
			}
		})
	}
}

func TestAgentThatStartsAnewIsUnknownUntilItHasMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		r := start(t, f)
		r.after(2 * window)
		f.do(func() { f.reborn["h2"] = time.Now() })
		if got := said(r.after(window / 2)); got != "refused samples-missing(h2)" {
			t.Errorf("an agent has just started: %s", got)
		}
		if got := said(r.after(window)); got != "steady" {
			t.Errorf("it has measured for a window: %s", got)
		}
	})
}

// What was measured under another membership does not count, and nothing is
// started before the cooldown is over, whoever changed it.
func TestChangedMembershipBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 3)
		r := start(t, f)
		r.after(2 * window)
		f.do(func() { f.voters = []string{"h1", "h2", "h4"}; f.slow["h2"] = time.Now() })
		if got := said(r.after(window / 2)); got != "refused samples-missing(h1) samples-missing(h2) samples-missing(h4)" {
			t.Errorf("after a change by hand: %s", got)
		}
		// Two windows and a half after the change h2 has been slow for a whole
		// window, and the cooldown (5 min + one window) has just ended.
		if got := said(r.after(5*time.Minute + window)); !strings.HasPrefix(got, "refused not-held(h2)") {
			t.Errorf("within the whole window: %s", got)
		}
		if got := said(r.after(window)); got != "plan h2>h3" {
			t.Errorf("cooldown over: %s", got)
		}
	})
}

func TestMarksThatCannotBeReadRefuseEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		f.book.fail = errors.New("mark at /suffrage/hosts/h4/mark: unknown field")
		d := start(t, f).after(2 * window)
		if got := said(d); got != "refused membership-unknown()" {
			t.Errorf("unreadable marks: %s", got)
		}
		if !strings.Contains(d.Refusals[0].Detail, "/suffrage/hosts/h4/mark") {
			t.Errorf("the refusal does not say what could not be read: %s", d.Refusals[0])
		}
	})
}

// Commands, and the controller after this one, have the ages from the book only:
// those that one write did not reach it with are written later, although the
// decision stays the same.
func TestAgesThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		r := start(t, f)
		r.after(2 * window)
		f.do(func() { f.slow["h3"], f.book.full = time.Now(), errors.New("etcd: no leader") })
		d := r.after(whole + 10*period)
		if said(d) != "plan h3>h4" || f.book.previous.Key == d.Key() {
			t.Fatalf("%s decided, and %s written", d.Key(), f.book.previous.Key)
		}
		f.do(func() { f.book.full = nil })
		d = r.after(2 * period)
		if got := f.book.previous; got.Key != d.Key() || !got.Since.Equal(d.Since) {
			t.Errorf("%s since %v is written, want %s since %v", got.Key, got.Since, d.Key(), d.Since)
		}
	})
}

// A controller that takes over while the book cannot be read leaves it as it is,
// and goes on with its ages as soon as it can.
func TestAgesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		f.book.previous, f.book.torn = &membership.Previous{Key: "refused voter-down(h3)"}, errors.New("etcd: no answer in time")
		g := f.gatherer()
		round := func() (key string) {
			in, err := g.Gather(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if in.Previous != nil {
				key = in.Previous.Key
			}
			if err := g.Remember(t.Context(), membership.Decide(in)); err != nil {
				t.Fatal(err)
			}
			return key
		}
		round()
		if got := f.book.previous.Key; got != "refused voter-down(h3)" {
			t.Errorf("unread, it was written over with %s", got)
		}
		f.book.torn = nil
		if got := round(); got != "refused voter-down(h3)" {
			t.Errorf("it goes on with %q", got)
		}
		if got := f.book.previous.Key; got == "refused voter-down(h3)" {
			t.Error("nothing was written")
		}
	})
}

// One that only looks has the ages of the controller that decides, however long
// it looks.
func TestLookerFollowsTheAgesOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		g := f.gatherer()
		for _, key := range []string{"steady", "refused voter-down(h3)"} {
			f.book.previous = &membership.Previous{Key: key}
			if in, err := g.Gather(t.Context()); err != nil || in.Previous == nil || in.Previous.Key != key {
				t.Errorf("written %s, seen %+v, %v", key, in.Previous, err)
			}
		}
	})
}

// A full or broken directory of records costs the records, not the decision.
func TestRecordsThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		r := start(t, f)
		synctest.Wait()
		// The first round may be recorded already; what follows cannot be.
		if err := errors.Join(os.RemoveAll(r.dir), os.WriteFile(r.dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := said(r.after(2 * window)); got != "steady" {
			t.Errorf("decision without records: %s", got)
		}
		if got := testutil.ToFloat64(r.loop.Metrics.recordFailures); got == 0 {
			t.Error("record_failures_total is 0")
		}
		if !strings.Contains(r.logs.String(), r.dir) {
			t.Errorf("the log does not name the directory:\n%s", r.logs)
		}
	})
}
