package membership

import (
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"suffrage/fitness"
)

func TestRequestValidate(t *testing.T) {
	at := testNow
	for _, c := range []struct {
		q    Request
		want string // part of the error, empty for none
		says string
	}{
		{q: Request{Out: "h3", In: "h4", By: "anna", At: at}, says: "swap h3 → h4, asked for by anna"},
		{q: Request{Target: 5, By: "anna", At: at}, says: "5 voters, asked for by anna"},
		{q: Request{Target: 4, By: "anna", At: at}, says: "4 voters, asked for by anna"}, // a refusal says it
		{q: Request{Dead: "h3", Member: "9a1c", By: "anna", At: at}, says: "remove dead h3 (member 9a1c), asked for by anna"},
		{q: Request{By: "anna", At: at}, want: "exactly one"},
		{q: Request{Out: "h3", In: "h4", Target: 5, By: "anna", At: at}, want: "exactly one"},
		{q: Request{Target: 3, Dead: "h3", Member: "9a1c", By: "anna", At: at}, want: "exactly one"},
		{q: Request{Out: "h3", Member: "9a1c", By: "anna", At: at}, want: "exactly one"},
		{q: Request{Out: "h3", By: "anna", At: at}, want: "out and in"},
		{q: Request{In: "h3", By: "anna", At: at}, want: "out and in"},
		{q: Request{Out: "h3", In: "h3", By: "anna", At: at}, want: "its own place"},
		{q: Request{Dead: "h3", By: "anna", At: at}, want: "dead and member"},
		{q: Request{Member: "9a1c", By: "anna", At: at}, want: "dead and member"},
		{q: Request{Target: -1, By: "anna", At: at}, want: "1 to 99"},
		{q: Request{Target: 100, By: "anna", At: at}, want: "1 to 99"},
		{q: Request{Target: 5, At: at}, want: "by and at"},
		{q: Request{Target: 5, By: "anna"}, want: "by and at"},
		{q: Request{Target: 5, By: ByController, At: at}, want: "no person"},
		{q: Request{Dead: "h3\n", Member: "9a1c", By: "anna", At: at}, want: "printable"},
		{q: Request{Dead: "h3", Member: strings.Repeat("9", 501), By: "anna", At: at}, want: "printable"},
	} {
		err := c.q.Validate()
		if c.want == "" && (err != nil || c.q.String() != c.says) {
			t.Errorf("%+v: %v, says %q, want %q", c.q, err, c.q, c.says)
		} else if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.q, err, c.want)
		}
	}
	a, b := Request{Target: 5, By: "anna", At: at}, Request{Target: 7, By: "anna", At: at}
	if !a.Same(a) || a.Same(b) {
		t.Error("requests for 5 and 7 voters are taken for one, or one for two")
	}
}

// Which decisions end a request, and which leave it for the next round.
func TestRequestOver(t *testing.T) {
	swap, target, dead := Request{Out: "h3", In: "h4"}, Request{Target: 5}, Request{Dead: "h3", Member: "m-h3"}
	refused := func(k RefusalKind) Decision {
		return Decision{Kind: Refused, Refusals: []Refusal{{Kind: Hold}, {Kind: k}}}
	}
	for _, c := range []struct {
		why                string
		d                  Decision
		once, untilReached bool
	}{
		{"it is taken up", Decision{Kind: Planned}, false, false},
		{"there is nothing to do", Decision{Kind: Steady}, true, true},
		{"it lifts", refused(Hold), true, false},
		{"a person lifts it, and the request stands", refused(Owner), true, false},
		{"it cannot be", refused(Reject), true, true},
		{"an operation is open, its own perhaps", Decision{Kind: StepNext, Operation: &Operation{}}, true, false},
		{"an operation is held", Decision{Kind: Refused, Operation: &Operation{}, Refusals: []Refusal{{Kind: Owner}}}, true, false},
	} {
		if got := target.Over(c.d); got != c.untilReached {
			t.Errorf("%s: for a number of voters it is over is %t, want %t", c.why, got, c.untilReached)
		}
		for _, q := range []Request{swap, dead} {
			if got := q.Over(c.d); got != c.once {
				t.Errorf("%s: %s is over is %t, want %t", c.why, q, got, c.once)
			}
		}
	}
}

// anyRequest is one for another number of voters, or for the removal of a dead
// one, in any fleet; half of those that are to be dead are.
func anyRequest(r *rand.Rand, in *Inputs) {
	q := Request{By: "anna", At: in.Now}
	if r.Intn(2) == 0 {
		q.Target = []int{1, 3, 3, 4, 5, 5, 7, 7, 9}[r.Intn(9)]
		if in.Policy.Maximum = q.Target + 1; r.Intn(5) > 0 {
			in.Policy.Target = q.Target
		}
	} else {
		m := &in.View.Members[r.Intn(len(in.View.Members))]
		if q.Dead, q.Member = m.Host, m.ID; r.Intn(2) == 0 {
			m.Responding = false
		}
	}
	in.Request = &q
}

// What the owner asks for is planned only as the invariants of the design have
// it, and never anything else in its place.
func TestRequestedPlanNeedsItsPart(t *testing.T) {
	grown, shrunk, dead := 0, 0, 0
	check := func(t *rapid.T) {
		in := anyFleet(t)
		in.View.MembershipChanged, in.Operations = in.Now.Add(-3*in.Policy.Cooldown()), nil
		anyRequest(rand.New(rand.NewSource(rapid.Int64().Draw(t, "request"))), &in)
		d := Decide(in)
		if d.Plan == nil {
			return
		}
		v, n, p := in.View, len(in.View.Voters()), *d.Plan
		never := func(what string, is bool) {
			if is {
				t.Errorf("%s, and yet\n%s", what, d)
			}
		}
		never("nothing like it was asked for", p.Dead != (in.Request.Dead != "") || p.Out != "" && p.In != "")
		never("a learner is there", n != len(v.Members))
		never("an alarm is raised", len(v.Alarms) > 0)
		for _, m := range v.Voters() {
			never(m.ID+" does not respond", !m.Responding && m.ID != in.Request.Member)
		}
		out, _ := v.HostNamed(p.Out)
		never(p.Out+" is pinned", out.Mark.IsPinned())
		switch {
		case p.Dead:
			dead++
			never("it is another one", p.OutMember != in.Request.Member || p.Out != in.Request.Dead)
			never("it answers", slices.ContainsFunc(v.Members, func(m Member) bool { return m.ID == p.OutMember && m.Responding }))
			never("too few answer to agree", n-1 < Quorum(n))
			never("a dead one leads", v.Leader() == p.OutMember)
		case p.In != "":
			grown++
			h, _ := v.HostNamed(p.In)
			never(p.In+" may have no vote", !h.Mark.IsEligible() || !h.Reachable)
			never("there are enough", n >= in.Request.Target || in.Request.Target != in.Policy.Target)
			never("it would pass the maximum", n+1 > in.Policy.Maximum)
			for _, r := range in.Readings {
				never(p.In+" is not fit", r.Host == p.In && r.Peer == "" && (r.Band != fitness.Under || !r.Whole()))
			}
		default:
			shrunk++
			never("there are too few", n-1 < 3 || n <= in.Request.Target || in.Request.Target != in.Policy.Target)
			never(p.Out+" is unmanaged", !out.Mark.IsManaged())
		}
		never("the target is none", !p.Dead && !possible(in.Request.Target))
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 30 { // most fleets have something that forbids it
			check(t)
		}
	})
	t.Logf("%d to grow, %d to shrink, %d dead", grown, shrunk, dead)
	if grown == 0 || shrunk == 0 || dead == 0 {
		t.Error("some kind of plan was never drawn, so it was not tested")
	}
}

// The order in which anything comes makes no difference to these either, and
// nothing that is wrong with the inputs ends in a panic, before or under way.
func TestRequestsAndTheirOperationsDoNotPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyFleet(t)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "request")))
		anyRequest(r, &in)
		want := Decide(in)
		in.View.Members, in.View.Hosts, in.Readings = shuffled(r, in.View.Members), shuffled(r, in.View.Hosts), shuffled(r, in.Readings)
		if got := Decide(in); got.String() != want.String() {
			t.Errorf("in another order:\n%s\n%s", want, got)
		}
		if want.Plan != nil {
			op := Begin(in, *want.Plan, 1, ByController, "https://h4:2380")
			if op.By != "anna" || op.Title() != want.Plan.String() || (op.InPeer == "") != (op.In == "") {
				t.Errorf("begun as %+v", op)
			}
			in.Open, in.Policy.Mode = &op, Active
		}
		for range 1 + r.Intn(8) {
			scramble(t, reflect.ValueOf(&in).Elem())
			d := Decide(in)
			_, _ = d.String(), d.Key()
		}
	})
}
