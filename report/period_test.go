package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"suffrage/fitness"
	"suffrage/membership"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// moment is one of three voters, two standbys: steady and fit until a test says otherwise.
func moment(at time.Duration, change ...func(*membership.Moment)) *membership.Moment {
	m := &membership.Moment{Version: 1, At: noon.Add(at), Next: fitness.Duration(2 * time.Minute), Mode: "dry-run", Kind: membership.Steady,
		Voters: []string{"h1", "h2", "h3"}, Leader: "h1", FitVoters: 3, Tolerance: 1, Limits: fitness.DefaultLimits(), Figures: map[string]membership.Reach{}}
	for i := 1; i <= 5; i++ {
		host := fmt.Sprint("h", i)
		m.Hosts = append(m.Hosts, membership.MomentHost{Host: host, Status: fitness.Fit, Whole: true, Mark: "eligible"})
		m.Figures["wal_fsync "+host] = membership.Reach{0.002, 0.002}
		for j := 1; j <= 5; j++ {
			if j != i && min(i, j) <= 3 {
				m.Figures[fmt.Sprintf("rtt h%d h%d", i, j)] = membership.Reach{0.001, 0.001}
			}
		}
	}
	for _, c := range change {
		c(m)
	}
	return m
}

// slow makes h3 unfit, with slow pairs.
func slow(m *membership.Moment) {
	m.Hosts[2].Status, m.Hosts[2].Reasons = fitness.Unfit, []string{"rtt h1"}
	for k, r := range m.Figures {
		if strings.HasPrefix(k, "rtt") && strings.Contains(k, "h3") {
			m.Figures[k] = membership.Reach{r[0] + 0.149, r[1] + 0.149}
		}
	}
}

func plan(m *membership.Moment) { slow(m); m.Kind, m.Out, m.In = membership.Planned, "h3", "h4" }

func refuse(kind membership.RefusalKind, codes ...membership.Code) func(*membership.Moment) {
	return func(m *membership.Moment) {
		m.Kind = membership.Refused
		for _, c := range codes {
			m.Refusals = append(m.Refusals, membership.MomentRefusal{Code: c, Kind: kind})
		}
	}
}

func reportOf(from, to time.Duration, moments ...*membership.Moment) Report {
	p := New(noon.Add(from), noon.Add(to))
	for _, m := range moments {
		p.Add(m)
	}
	return p.Report()
}

const minute = time.Minute

// Durations, across gaps above all: a controller that was down saw nothing good.
func TestDurations(t *testing.T) {
	for _, test := range []struct {
		why      string
		from, to time.Duration
		moments  []*membership.Moment
		want     string // kinds with seconds and times; known, unknown, gaps
	}{
		{"what a moment says holds to the next", 0, 4 * minute,
			[]*membership.Moment{moment(0), moment(minute, plan), moment(3 * minute)}, "plan 120 1, steady 120 2; known 240 unknown 0 in 0"},
		{"a silence longer than announced is not known, from its first second", 0, 20 * minute,
			[]*membership.Moment{moment(0), moment(minute, plan), moment(19*minute, plan)}, "plan 60 1, steady 60 1; known 120 unknown 1080 in 1"},
		{"a plan on both sides of a gap began once", 0, 20 * minute,
			[]*membership.Moment{moment(0, plan), moment(minute, plan), moment(18*minute, plan), moment(20*minute, plan)}, "plan 180 1; known 180 unknown 1020 in 1"},
		{"before the first and after the last announced one nothing is known", 0, 20 * minute,
			[]*membership.Moment{moment(5 * minute), moment(6 * minute)}, "steady 60 1; known 60 unknown 1140 in 2"},
		{"a moment from before the period reaches into it", 0, 2 * minute,
			[]*membership.Moment{moment(-minute, plan), moment(minute)}, "plan 60 1, steady 60 1; known 120 unknown 0 in 0"},
		{"one from behind it ends what was", 0, 2 * minute,
			[]*membership.Moment{moment(0), moment(minute), moment(3*minute, plan)}, "steady 120 1; known 120 unknown 0 in 0"},
		{"one from behind it that came too late ends nothing", 0, 2 * minute,
			[]*membership.Moment{moment(0), moment(minute), moment(30*minute, plan)}, "steady 60 1; known 60 unknown 60 in 1"},
		{"a clock that was wrong for a moment costs that moment", 0, 4 * minute,
			[]*membership.Moment{moment(0), moment(90 * time.Hour), moment(minute), moment(2 * minute), moment(4 * minute)}, "steady 240 1; known 240 unknown 0 in 0"},
		{"a moment from before the last is left out", 0, 3 * minute,
			[]*membership.Moment{moment(0), moment(2 * minute), moment(minute, plan), moment(3 * minute)}, "steady 180 1; known 180 unknown 0 in 0"},
		{"the same moment twice adds nothing", 0, 2 * minute,
			[]*membership.Moment{moment(0), moment(0), moment(minute), moment(minute), moment(2 * minute)}, "steady 120 1; known 120 unknown 0 in 0"},
		{"nothing in the period: all of it is unknown", 0, 2 * minute, []*membership.Moment{moment(-time.Hour)}, "; known 0 unknown 120 in 1"},
		{"two gaps with nothing known between are one", 0, time.Hour,
			[]*membership.Moment{moment(0), moment(20 * minute), moment(40 * minute)}, "; known 0 unknown 3600 in 1"},
	} {
		r := reportOf(test.from, test.to, test.moments...)
		var kinds []string
		for _, k := range r.Kinds {
			kinds = append(kinds, fmt.Sprintf("%s %.0f %d", k.Kind, k.Seconds, k.Times))
		}
		got := fmt.Sprintf("%s; known %.0f unknown %.0f in %d", strings.Join(kinds, ", "), r.RecordedSeconds, r.UnknownSeconds, r.GapCount)
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.why, got, test.want)
		}
	}
}

func TestRefusalsAreCountedAsTheyBegin(t *testing.T) {
	hold, owner := refuse(membership.Hold, "cooldown"), refuse(membership.Owner, "alarm")
	r := reportOf(0, 8*minute,
		moment(0, hold), moment(minute, hold, owner), moment(2*minute, owner), moment(3*minute), moment(4*minute, owner), moment(6*minute, hold), moment(8*minute))
	got := ""
	for _, f := range r.Refusals {
		got += fmt.Sprintf("%s %d×, %.0f s, longest %.0f; ", f.Code, f.Times, f.Seconds, f.Longest)
	}
	if want := "alarm 2×, 240 s, longest 120; cooldown 2×, 240 s, longest 120; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if r.Asked.Times != 2 || r.Asked.Seconds != 240 {
		t.Errorf("asked %d times for %.0f s, want 2 and 240", r.Asked.Times, r.Asked.Seconds)
	}
}

func TestEffect(t *testing.T) {
	noStandby := func(m *membership.Moment) { m.Hosts[3].Mark, m.Hosts[4].Status = "ineligible", fitness.Marginal }
	r := reportOf(0, 10*minute,
		moment(0, slow, noStandby, refuse(membership.Owner, "no-candidate")), // nobody stands by
		moment(2*minute, slow, refuse(membership.Hold, "cooldown")),          // somebody does, and it is held back
		moment(4*minute, plan), moment(6*minute, plan),
		moment(8*minute, plan, func(m *membership.Moment) { delete(m.Figures, "wal_fsync h4") }), // cannot be reckoned
		moment(10*minute))
	e := r.Effect
	if len(e.Voters) != 1 || e.Voters[0].Host != "h3" || e.Voters[0].Unfit.Seconds != 600 || e.Voters[0].StoodBySeconds != 480 || e.Voters[0].PlannedSeconds != 360 {
		t.Errorf("unfit voters %+v", e.Voters)
	}
	if len(e.HeldBy) != 1 || e.HeldBy[0].Code != "cooldown" || e.HeldBy[0].Seconds != 120 {
		t.Errorf("held by %+v, want the cooldown for 120 s: while nobody stood by nothing was held back", e.HeldBy)
	}
	if e.Commit.CountedSeconds != 240 || e.Commit.MissingSeconds != 120 {
		t.Errorf("counted %.0f, missing %.0f", e.Commit.CountedSeconds, e.Commit.MissingSeconds)
	}
	near := func(f fitness.Figure, want float64) bool { return float64(f) >= want && float64(f) <= want*1.06 }
	c := e.Commit
	// Led by h1, a write waits for h2 only: 1 ms and 2 ms. Led by h3, or with h2
	// lost, for a slow pair.
	if !near(c.Led.Before.Median, 0.003) || !near(c.Led.After.Median, 0.003) || !near(c.AnyLeader.Before.Median, 0.152) || !near(c.AnyLeader.After.Median, 0.003) ||
		!near(c.OneLost.Before.Median, 0.152) || !near(c.OneLost.After.P95, 0.003) || c.LoweredSeconds != 240 {
		t.Errorf("commit %+v", c)
	}
}

// A dumb second opinion: all orders of answers, the time at which a majority is there.
func TestCommitIsAMajoritysTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 3, 5, 7}).Draw(t, "voters")
		m := &membership.Moment{Figures: map[string]membership.Reach{}}
		var voters []string
		f := rapid.Float64Range(0, 1)
		for i := range n {
			voters = append(voters, fmt.Sprint("v", i))
			m.Figures[fmt.Sprint("wal_fsync v", i)] = membership.Reach{fitness.Figure(f.Draw(t, "disk")), 1}
			for j := range i {
				m.Figures[fmt.Sprintf("rtt v%d v%d", i, j)] = membership.Reach{fitness.Figure(f.Draw(t, "trip")), 1}
			}
		}
		got, ok := commitOf(m, voters, "v0")
		if !ok {
			t.Fatal("everything is known")
		}
		// at counts who has answered by some time; lost is left out.
		at := func(leader, lost int, by float64) (answered int) {
			for i := range n {
				d := float64(m.Figures[fmt.Sprint("wal_fsync v", i)][0])
				if i != leader {
					d += float64(m.Figures[fmt.Sprintf("rtt v%d v%d", max(i, leader), min(i, leader))][0])
				}
				if i != lost && d <= by {
					answered++
				}
			}
			return answered
		}
		need := n/2 + 1
		if by := float64(got.led); at(0, -1, by) < need || at(0, -1, by-1e-9) >= need {
			t.Fatalf("led by v0 %v", by)
		}
		if n == 1 {
			return
		}
		worst := math.Inf(-1)
		for l := range n {
			for lost := range n {
				if lost == l {
					continue
				}
				for by := range n { // the answer is one of the answers' times
					d := float64(m.Figures[fmt.Sprint("wal_fsync v", by)][0])
					if by != l {
						d += float64(m.Figures[fmt.Sprintf("rtt v%d v%d", max(by, l), min(by, l))][0])
					}
					if at(l, lost, d) >= need && at(l, lost, d-1e-12) < need {
						worst = max(worst, d)
					}
				}
			}
		}
		if math.Abs(worst-float64(got.lost)) > 1e-9 {
			t.Fatalf("with one lost %v, want %v", got.lost, worst)
		}
	})
}

// Whatever the moments: all time is counted once, and it makes no difference in
// which timelines they lie.
func TestTimeAddsUp(t *testing.T) {
	changes := []func(*membership.Moment){func(*membership.Moment) {}, slow, plan, refuse(membership.Hold, "cooldown", "alarm"), refuse(membership.Owner, "alarm"),
		func(m *membership.Moment) { m.Kind, m.Operation, m.Out, m.In = membership.StepNext, "op", "h3", "h4" },
		func(m *membership.Moment) { m.Voters, m.Leader = []string{}, "" }, func(m *membership.Moment) { clear(m.Figures) }}
	rapid.Check(t, func(t *rapid.T) {
		var all []*membership.Moment
		at := time.Duration(rapid.IntRange(-600, 600).Draw(t, "begin")) * time.Second
		for range rapid.IntRange(0, 20).Draw(t, "moments") {
			all = append(all, moment(at, rapid.SampledFrom(changes).Draw(t, "change")))
			at += time.Duration(rapid.SampledFrom([]int{0, 1, 10, 60, 119, 120, 121, 3000}).Draw(t, "pause")) * time.Second
		}
		to := time.Duration(rapid.IntRange(1, 7200).Draw(t, "to")) * time.Second
		r := reportOf(0, to, all...)
		sum := r.UnknownSeconds
		for _, k := range r.Kinds {
			sum += k.Seconds
		}
		if math.Abs(sum-to.Seconds()) > 1e-6 || math.Abs(r.RecordedSeconds+r.UnknownSeconds-to.Seconds()) > 1e-6 {
			t.Fatalf("kinds and gaps are %v s of %v", sum, to)
		}
		for _, h := range r.Hosts {
			if math.Abs(h.Voter.Sum()+h.Standby.Sum()-r.RecordedSeconds) > 1e-6 {
				t.Fatalf("%s has %v + %v s of %v", h.Host, h.Voter.Sum(), h.Standby.Sum(), r.RecordedSeconds)
			}
		}
		gaps := 0.0
		for _, g := range r.Gaps {
			gaps += g.Seconds
		}
		if r.GapCount <= maxGaps && math.Abs(gaps-r.UnknownSeconds) > 1e-6 {
			t.Fatalf("%d gaps are %v s of %v", r.GapCount, gaps, r.UnknownSeconds)
		}
		if c := r.Effect.Commit; math.Abs(c.CountedSeconds+c.MissingSeconds-r.Effect.PlannedSeconds) > 1e-6 {
			t.Fatalf("commit is reckoned for %v + %v s of %v", c.CountedSeconds, c.MissingSeconds, r.Effect.PlannedSeconds)
		}
		// The same in two timelines, merged.
		var one, two bytes.Buffer
		for _, m := range all {
			w := &one
			if rapid.Bool().Draw(t, "other") {
				w = &two
			}
			line, _ := m.Append(nil)
			w.Write(line)
		}
		p := New(noon, noon.Add(to))
		for m, err := range Merge(Lines("one", &one), Lines("two", &two)) {
			if err != nil {
				t.Fatal(err)
			}
			p.Add(m)
		}
		if again := p.Report(); again.RecordedSeconds != r.RecordedSeconds || again.GapCount != r.GapCount {
			t.Fatalf("in two timelines it is %v s known in %d gaps, in one %v and %d", again.RecordedSeconds, again.GapCount, r.RecordedSeconds, r.GapCount)
		}
		if again, _ := json.Marshal(reportOf(0, to, all...)); !bytes.Equal(again, must(json.Marshal(r))) {
			t.Fatal("twice the same moments make two reports")
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestSeries(t *testing.T) {
	burst := func(m *membership.Moment) { m.Figures["rtt h1 h2"] = membership.Reach{0.001, 0.4} }
	lost := func(m *membership.Moment) { m.Figures["rtt h2 h1"] = membership.Reach{fitness.Inf, fitness.Inf} }
	r := reportOf(0, 10*minute, moment(0), moment(2*minute, burst), moment(4*minute), moment(6*minute, lost), moment(8*minute), moment(10*minute))
	s := r.Series[0]
	if s.Host != "h1" || s.Peer != "h2" || s.KnownSeconds != 600 || s.OverSeconds != 120 || s.Worst != fitness.Inf {
		t.Errorf("%s %s: known %v, over %v, worst %v; want 600, 120 (the worse direction while it was lost), inf", s.Host, s.Peer, s.KnownSeconds, s.OverSeconds, s.Worst)
	}
	if n := len(s.Points); n != Columns {
		t.Errorf("%d points", n)
	}
	if diff := cmp.Diff(fitness.Figure(0.4), s.Points[Columns/10].High); diff != "" {
		t.Errorf("the burst between two moments is not in the column before the second: %s", diff)
	}
	if got := len(r.Series); got != 3+6+5 {
		t.Errorf("%d series, want 9 pairs and 5 disks", got)
	}
}

func TestBounds(t *testing.T) {
	many := func(m *membership.Moment) {
		for i := range 1000 {
			m.Refusals = append(m.Refusals, membership.MomentRefusal{Code: "alarm", Kind: membership.Owner, Subject: fmt.Sprint(i)})
			m.Hosts = append(m.Hosts, membership.MomentHost{Host: fmt.Sprint("x", i)})
			m.Figures[fmt.Sprint("rtt h1 x", i)] = membership.Reach{1, 1}
		}
	}
	r := reportOf(0, 2*minute, moment(0, many), moment(minute, many), moment(2*minute, many))
	if len(r.Refusals) != maxSpans+1 || len(r.Hosts) != maxHosts || len(r.Series) != maxSeries || r.Left == 0 {
		t.Errorf("%d refusals, %d hosts, %d series, %d left out", len(r.Refusals), len(r.Hosts), len(r.Series), r.Left)
	}
}

// Plans that are no swap count as plans, and not as swaps that would have mended.
func TestPlansOfEveryKind(t *testing.T) {
	planned := func(out, in, regrade string) func(*membership.Moment) {
		return func(m *membership.Moment) {
			m.Kind, m.Out, m.In, m.Regrade = membership.Planned, out, in, regrade
			if regrade != "" {
				m.To = fitness.EtcdOnly
			}
		}
	}
	r := reportOf(0, 5*minute, moment(0), moment(minute, planned("", "h4", "")), moment(2*minute, planned("", "", "h3")), moment(3*minute, planned("h5", "", "")), moment(4*minute, planned("h3", "h4", "")))
	if times, seconds := r.planned(); times != 4 || seconds != 240 {
		t.Errorf("%d plans for %v s, want 4 for 240", times, seconds)
	}
	if r.Effect.PlannedSeconds != 60 {
		t.Errorf("a swap was planned for %v s, want 60", r.Effect.PlannedSeconds)
	}
	if said := strings.Join(r.findings(), " "); !strings.Contains(said, "A plan came up 4 times, and stood for 4 min in all") {
		t.Errorf("it says: %s", said)
	}
	if facts := fmt.Sprint(r.facts()); !strings.Contains(facts, "{plans 4 stood for 4 min}") {
		t.Errorf("the page begins with: %s", facts)
	}
}

func TestWhoLiftsARefusal(t *testing.T) {
	for kind, want := range map[membership.RefusalKind]string{membership.Hold: "itself", membership.Owner: "you", membership.Reject: "asking again, once its reason is gone"} {
		rows := reportOf(0, minute, moment(0, refuse(kind, membership.NoCandidate)), moment(minute)).refusalTable().Rows
		if len(rows) != 1 || rows[0][2] != want {
			t.Errorf("%s: %v, want that it is lifted by %s", kind, rows, want)
		}
	}
}
