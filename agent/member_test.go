package agent

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
	"suffrage/probes"
)

// watched is a member that is watched with a window of 10 s, by a clock that
// the test moves.
type watched struct {
	*member
	now int64
}

func newWatched() *watched {
	w := &watched{now: 1_700_000_000_000_000}
	r := newRecord(func() int64 { return w.now })
	w.member = &member{record: r, window: 10 * time.Second, wal: r.ring(fitness.WALFsync, ""), commit: r.ring(fitness.BackendCommit, "")}
	return w
}

func counts(fast, slow uint64) probes.Histogram {
	return probes.Histogram{Count: fast + slow, Buckets: []probes.Bucket{{Le: .008, Count: fast}, {Le: .016, Count: fast + slow}, {Le: math.Inf(1), Count: fast + slow}}}
}

// page takes in what the member shows after some seconds: wall is its host's
// wall clock, started when the process began by that clock.
func (w *watched) page(after float64, wall, started float64, h probes.Histogram) {
	w.now += int64(after * 1e6)
	m := probes.EtcdMetrics{WALFsync: h, BackendCommit: h, Started: started, ElectionTimeout: fitness.Duration(time.Second)}
	w.heard = w.now
	w.note(m, w.now, time.UnixMicro(int64(wall*1e6)))
	w.histograms(m, w.now)
}

func (w *watched) bounds() []fitness.Bound {
	for _, s := range w.record.report(0).Series {
		if s.Signal == fitness.WALFsync {
			return s.Bounds
		}
	}
	return nil
}

func TestHistogramOverOneWindow(t *testing.T) {
	w := newWatched()
	start := w.now
	w.page(0, 1000, 900, counts(1_000_000, 1_000_000)) // long ago
	w.page(5, 1005, 900, counts(1_000_050, 1_000_000))
	if b := w.bounds(); len(b) != 0 {
		t.Errorf("%+v after half a window, want nothing yet", b)
	}
	w.page(5, 1010, 900, counts(1_000_100, 1_000_000))
	w.page(6, 1016, 900, counts(1_000_100, 1_000_100)) // never more than a window: since the page at 10 s
	w.page(4, 1020, 900, counts(1_000_150, 1_000_100))
	want := []fitness.Bound{
		{At: start + 10e6, Lo: 0, Hi: .008, N: 100},
		{At: start + 16e6, Lo: .008, Hi: .016, N: 100},
		{At: start + 20e6, Lo: .008, Hi: .016, N: 150},
	}
	if diff := cmp.Diff(want, w.bounds()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMemberRestartBeginsAnew(t *testing.T) {
	w := newWatched()
	for i := range 4 {
		w.page(5, 1000+5*float64(i), 900, counts(1000, uint64(i)))
	}
	n := len(w.bounds())
	w.page(5, 1020, 1018, counts(5, 0))
	if got, _ := w.restarts(); got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
	f := w.record.report(0).Facts.Member
	if age := w.now - f.Started; age != 2e6 {
		t.Errorf("began %d µs ago, want 2 s", age)
	}
	w.page(5, 1025, 1018, counts(500, 0))
	if got := len(w.bounds()); got != n {
		t.Errorf("%d bounds, want the %d from before: a window must pass first", got, n)
	}
	w.page(5, 1030, 1018, counts(600, 0))
	if b := w.bounds(); len(b) != n+1 || b[n].N != 595 {
		t.Errorf("%+v, want one from the new process alone", b)
	}
}

func TestClockThatIsSetIsNoRestart(t *testing.T) {
	w := newWatched()
	w.page(0, 1000, 900, counts(1, 0))
	began := w.record.report(0).Facts.Member.Started
	w.page(5, 4605, 4500, counts(2, 0)) // set forward by an hour: the boot time moves with it
	w.page(5, 110, 0.5, counts(3, 0))   // and back again
	w.page(5, 1015, 901, counts(4, 0))  // the boot time is in whole seconds
	if got, _ := w.restarts(); got != 0 || w.record.report(0).Facts.Member.Started != began {
		t.Errorf("%d restarts, want none", got)
	}
}

func TestStandbyAndReturn(t *testing.T) {
	w := newWatched()
	w.page(0, 1000, 900, counts(1, 0))
	w.now += 3e6
	w.absent(w.now)
	if w.record.report(0).Facts.Member != nil {
		t.Error("a member that is gone has no facts")
	}
	w.page(1, 1004, 1003, counts(1, 0))
	if got, _ := w.restarts(); got != 1 {
		t.Errorf("%d restarts, want 1: it was away for four seconds", got)
	}
	w.now += 60e6
	w.absent(w.now)
	w.page(1, 1070, 1069, counts(1, 0))
	if got, _ := w.restarts(); got != 1 {
		t.Errorf("%d restarts, want still 1: after a window's absence this is another member", got)
	}
}

func TestMemberThatTellsLittle(t *testing.T) {
	w := newWatched()
	w.page(0, 1000, 0, counts(1, 0))
	if f := w.record.report(0).Facts.Member; f.Started != 0 || f.Note == "" {
		t.Errorf("%+v, want a note", f)
	}
}
