package membership

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"suffrage/fitness"
)

// What a plan must never be made beside, each with its reason.
func TestPlanNeedsEverything(t *testing.T) {
	plans := 0
	rapid.Check(t, func(t *rapid.T) {
		in := anyFleet(t)
		d := Decide(in)
		if d.Plan == nil {
			return
		}
		plans++
		if d.Kind != Planned || len(d.Refusals) > 0 {
			t.Fatalf("a plan beside refusals:\n%s", d)
		}
		v := in.View
		never := func(what string, is bool) {
			if is {
				t.Errorf("%s, and yet\n%s", what, d)
			}
		}
		never("the membership is unknown", v.Error != "")
		never("fewer than three vote", len(v.Voters()) < 3)
		never("an even number votes", len(v.Voters())%2 == 0)
		never("a learner is there", len(v.Voters()) != len(v.Members))
		never("an alarm is raised", len(v.Alarms) > 0)
		never("a downgrade is open", v.Downgrade != "")
		never("no leader", !slices.ContainsFunc(v.Voters(), func(m Member) bool { return m.ID == v.Leader() }))
		for _, m := range v.Voters() {
			h, known := v.HostNamed(m.Host)
			never(m.ID+" does not respond", !m.Responding)
			never(m.ID+" is on no host", !known)
			never("the agent of "+h.Name+" is silent", !h.Reachable)
		}
		never("the cooldown runs", !v.MembershipChanged.IsZero() && in.Now.Sub(v.MembershipChanged) < in.Policy.Cooldown())
		for _, o := range in.Operations {
			never("the cooldown runs", in.Now.Sub(o.Ended) < in.Policy.Cooldown())
		}
		checkOut(t, in, d)
		checkIn(t, in, d)
	})
	t.Logf("%d plans were drawn", plans)
	if plans == 0 {
		t.Errorf("no plan was drawn: nothing was tested")
	}
}

func checkOut(t *rapid.T, in Inputs, d Decision) {
	out, _ := in.View.HostNamed(d.Plan.Out)
	i := slices.IndexFunc(in.View.Voters(), func(m Member) bool { return m.Host == out.Name })
	if i < 0 || in.View.Voters()[i].ID != d.Plan.OutMember {
		t.Fatalf("%s does not vote as %s", out.Name, d.Plan.OutMember)
	}
	if out.Mark.IsPinned() || !out.Mark.IsManaged() {
		t.Errorf("%s is %s and would lose its vote", out.Name, out.Mark.Word())
	}
	if !slices.ContainsFunc(in.Readings, func(r fitness.Reading) bool {
		return (r.Host == out.Name || r.Peer == out.Name) && r.Band == fitness.Over && r.Whole()
	}) {
		t.Errorf("%s has nothing that was over its limit for a whole window", out.Name)
	}
}

func checkIn(t *rapid.T, in Inputs, d Decision) {
	h, known := in.View.HostNamed(d.Plan.In)
	if !known || !h.Reachable || !h.Mark.IsEligible() || h.Facts.Link.Class == fitness.UnknownLink {
		t.Errorf("%s may not have a vote", h.Name)
	}
	if slices.ContainsFunc(in.View.Members, func(m Member) bool { return m.Host == h.Name }) {
		t.Errorf("%s has a member already", h.Name)
	}
	own := 0
	for _, r := range in.Readings {
		if r.Host == h.Name && r.Peer == "" {
			own++
			if r.Band != fitness.Under || !r.Whole() {
				t.Errorf("%s is not fit for a whole window: %+v", h.Name, r)
			}
		}
	}
	if own != len(fitness.HostSignals) {
		t.Errorf("%d of %d signals of %s were read", own, len(fitness.HostSignals), h.Name)
	}
	voters := hostsOf(in.View)
	after := append(without(voters, []string{d.Plan.Out}), h.Name)
	before, left := violating(in, voters, fitness.Whole), violating(in, after, fitness.Whole)
	if own := slices.ContainsFunc(d.Plan.Figures, func(f Datum) bool { return f.Name != "rtt" }); left > before || left == before && !own {
		t.Errorf("%d violating pairs before, %d after", before, left)
	}
	// It is slow with no voter that stays, but with those that are slow with most.
	for _, v := range without(after, []string{h.Name}) {
		if pairSlow(in, h.Name, v, 0) && violatingOf(in, voters, v) < 2 {
			t.Errorf("%s is slow with %s, which is slow with hardly anybody else", h.Name, v)
		}
	}
}

func hostsOf(v View) []string {
	var out []string
	for _, m := range v.Voters() {
		out = append(out, m.Host)
	}
	return out
}

func pairSlow(in Inputs, a, b string, held int) bool {
	return slices.ContainsFunc(in.Readings, func(r fitness.Reading) bool {
		return r.Signal == fitness.RTT && (r.Host == a && r.Peer == b || r.Host == b && r.Peer == a) && r.Band == fitness.Over && r.Held >= held
	})
}

func violating(in Inputs, hosts []string, held int) int {
	n := 0
	for i, a := range hosts {
		for _, b := range hosts[i+1:] {
			if pairSlow(in, a, b, held) {
				n++
			}
		}
	}
	return n
}

func violatingOf(in Inputs, voters []string, host string) int {
	n := 0
	for _, v := range voters {
		if v != host && pairSlow(in, host, v, fitness.Whole) {
			n++
		}
	}
	return n
}

// The order in which anything comes makes no difference.
func TestDecisionDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyFleet(t)
		want := Decide(in)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		in.View.Members = shuffled(r, in.View.Members)
		for i := range in.View.Members {
			in.View.Members[i].Opinion = shuffled(r, in.View.Members[i].Opinion)
		}
		in.View.Hosts = shuffled(r, in.View.Hosts)
		in.View.Alarms = shuffled(r, in.View.Alarms)
		in.Readings = shuffled(r, in.Readings)
		in.Operations = shuffled(r, in.Operations)
		if diff := cmp.Diff(want, Decide(in)); diff != "" {
			t.Errorf("in another order (-one +other):\n%s", diff)
		}
	})
}

func TestDecisionRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Decide(anyFleet(t))
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Decision
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.Transformer("unit", time.Time.UTC)); diff != "" {
			t.Errorf("after a round trip (-before +after):\n%s", diff)
		}
		if got.String() != want.String() || got.Key() != want.Key() {
			t.Errorf("reads differently after a round trip:\n%s\n%s", want, got)
		}
	})
}

// Whatever the inputs, a decision comes out, and never a plan for nonsense that
// has no quorum of voters.
func TestDecideNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyFleet(t)
		for range rapid.IntRange(0, 12).Draw(t, "scrambles") {
			scramble(t, reflect.ValueOf(&in).Elem())
		}
		d := Decide(in)
		_, _ = d.String(), d.Key()
		if d.Plan != nil && (len(in.View.Voters()) < 3 || in.View.Error != "") {
			t.Errorf("%s", d)
		}
		for i, r := range d.Refusals {
			if r.Code == "" || r.Kind == "" || r.Detail == "" || r.Next == "" || r.Since.After(in.Now) {
				t.Errorf("refusal without code, detail, next step or with an age below zero: %+v", r)
			}
			if slices.ContainsFunc(d.Refusals[:i], func(o Refusal) bool { return o.Code == r.Code && o.Subject == r.Subject }) {
				t.Errorf("%s(%s) is said twice", r.Code, r.Subject)
			}
		}
	})
}

// Bursts shorter than a window give no plan, wherever they fall; a state that
// lasts does.
func TestBurstsGiveNoPlan(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 10, 60, 99} {
		for before := 0; before <= 300-n; before += 7 {
			f := newFleet(3, 1)
			f.ping("h3", "h1", fmt.Sprintf("%dx20ms %dx5s %dx20ms", before, n, 300-n-before))
			f.ping("h3", "h2", f.series[reading{fitness.RTT, "h3", "h1"}])
			if d := Decide(f.inputs()); d.Plan != nil {
				t.Fatalf("%d bad samples after %d good ones: %s", n, before, d)
			}
		}
	}
	f := newFleet(3, 1)
	f.ping("h3", "h1", "500x5s")
	f.ping("h3", "h2", "500x5s")
	if d := Decide(f.inputs()); d.Plan == nil {
		t.Errorf("500 bad samples in a row: %s", d)
	}
}

// Four voters, one of them on its way out and one new: the controller that
// decides has begun nothing, so it begins nothing, whoever of them answers.
// (Which step of an open operation may go on is decided with its journal.)
func TestFourVotersInAllStatesOfAnswering(t *testing.T) {
	for state := range 16 {
		f := newFleet(4, 1)
		f.in.Policy.Target, f.in.Policy.Maximum = 3, 5
		f.ping("h1", "h2", "300x300ms")
		up := 0
		for i := range f.in.View.Members {
			m := &f.in.View.Members[i]
			if m.Responding = state&(1<<i) != 0; m.Responding {
				up++
			}
		}
		d := Decide(f.inputs())
		var codes []string
		for _, r := range d.Refusals {
			codes = append(codes, string(r.Code))
		}
		if d.Plan != nil || !slices.Contains(codes, string(ExtraVoter)) {
			t.Errorf("%04b answer: %s", state, d)
		}
		if n := len(slices.DeleteFunc(codes, func(c string) bool { return c != string(VoterDown) })); n != 4-up {
			t.Errorf("%04b answer: %d named as silent", state, n)
		}
	}
}

func TestTolerance(t *testing.T) {
	for _, tt := range []struct{ voters, good, want int }{
		{3, 3, 1}, {3, 2, 0}, {4, 4, 1}, {4, 3, 0}, {5, 5, 2}, {5, 4, 1}, {5, 3, 0},
		{1, 1, 0}, {2, 2, 0}, {7, 7, 3}, {3, 1, 0}, {3, 0, 0}, {0, 0, 0},
	} {
		if got := Tolerance(tt.voters, tt.good); got != tt.want {
			t.Errorf("%d of %d voters good: %d more may fail, want %d", tt.good, tt.voters, got, tt.want)
		}
	}
	f := newFleet(4, 1) // four voters and a learner, which counts for nothing
	if err := f.apply("learner h5"); err != nil {
		t.Fatal(err)
	}
	if d := Decide(f.inputs()); d.Voters != 4 || d.Tolerance != 1 {
		t.Errorf("with a learner beside four voters: %s", d)
	}
	for n := 1; n <= 7; n++ {
		f := newFleet(n, 0)
		if d := Decide(f.inputs()); d.Voters != n || d.FitVoters != n || d.Tolerance != (n-1)/2 {
			t.Errorf("%d voters: %s", n, d)
		}
	}
}
