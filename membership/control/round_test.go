package control

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"suffrage/membership"
)

func TestMetricsShowTheNewestRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		r := start(t, f)
		r.after(2 * window)
		f.do(func() { f.slow["h3"] = time.Now() })
		r.after(whole + 10*period)
		want := `
# HELP suffrage_decision 1 for the kind of the last decision, 0 for the others. refused for long: run suffrage status.
# TYPE suffrage_decision gauge
suffrage_decision{kind="plan"} 1
suffrage_decision{kind="refused"} 0
suffrage_decision{kind="steady"} 0
suffrage_decision{kind="step"} 0
# HELP suffrage_leading 1 while this controller leads. Summed over all controllers it should be 1.
# TYPE suffrage_leading gauge
suffrage_leading 1
# HELP suffrage_operation_open 1 while an operation is under way.
# TYPE suffrage_operation_open gauge
suffrage_operation_open 0
# HELP suffrage_plan_age_seconds For how long the plan has been the same; there only while there is one. out loses its vote, in gets one; or the server of the host regrade gets the grade to. Old in mode active: something keeps it from starting.
# TYPE suffrage_plan_age_seconds gauge
suffrage_plan_age_seconds{in="h4",out="h3",regrade="",to=""} 27
# HELP suffrage_rtt_limit_seconds The voters' limit for suffrage_rtt_p99_seconds: a tenth of the election timeout.
# TYPE suffrage_rtt_limit_seconds gauge
suffrage_rtt_limit_seconds 0.1
# HELP suffrage_tolerance How many more voters can be lost, counted on fit ones. 0: lose nothing now.
# TYPE suffrage_tolerance gauge
suffrage_tolerance 0
# HELP suffrage_voters_fit Voters that answer and are not unfit.
# TYPE suffrage_voters_fit gauge
suffrage_voters_fit 2
# HELP suffrage_voter_up 1 when the voter served a request that passes through a quorum, in the last round. 0: see its etcd's log and the path to it.
# TYPE suffrage_voter_up gauge
suffrage_voter_up{host="h1"} 1
suffrage_voter_up{host="h2"} 1
suffrage_voter_up{host="h3"} 1
`
		if err := testutil.GatherAndCompare(r.reg, strings.NewReader(want), "suffrage_decision", "suffrage_leading", "suffrage_operation_open",
			"suffrage_plan_age_seconds", "suffrage_rtt_limit_seconds", "suffrage_tolerance", "suffrage_voter_up", "suffrage_voters_fit"); err != nil {
			t.Error(err)
		}
		if problems, err := testutil.GatherAndLint(r.reg); err != nil || len(problems) > 0 {
			t.Errorf("names or help that Prometheus advises against: %v %v", problems, err)
		}
		// Pairs of two standbys are not asked for and not kept.
		if n, err := testutil.GatherAndCount(r.reg, "suffrage_rtt_p99_seconds"); err != nil || n != 3*2+2*3*2 {
			t.Errorf("%d ordered pairs (%v), want those with a voter at one end", n, err)
		}
	})
}

// BenchmarkRound is one round over 200 agents in the steady state, each pulled
// from memory with one new sample per series: the controller's own work.
func BenchmarkRound(b *testing.B) {
	f := newTestFleet(period, 3, 197)
	f.start = time.Now().Add(-4 * window)
	f.book = testBook{clusterID: "c1", voters: fmt.Sprint(f.voters)} // nobody saw a change
	g := f.gatherer()
	round := func() {
		in, err := g.Gather(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if d := membership.Decide(in); d.Kind != membership.Steady {
			b.Fatal(d.Key())
		}
	}
	round() // the first pulls all that the agents have
	b.ReportAllocs()
	for b.Loop() {
		f.do(func() { f.start = f.start.Add(-period) })
		for _, t := range g.told {
			t.instance = f.start.String() // the same agents, one period later
		}
		round()
	}
}
