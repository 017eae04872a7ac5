package memtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// fault is one thing that goes wrong: at a named point of the operator, or with
// a call, counted over the whole run.
type fault struct {
	what string // crash, freeze, fails, unanswered, late, stalled; trouble: a voter that stays is gone for a minute; actor: the removal controller's call is late
	at   int    // the point, the call; seconds
}

func (f fault) String() string { return fmt.Sprintf("%s at %d", f.what, f.at) }

// kind is a kind of operation, from some number of voters to another.
type kind struct {
	name          string
	voters, after int
	out           string // the host that loses its vote
	begin, turn   func(s *Sim)
}

func (k kind) String() string { return k.name }

func pinned(s *Sim) {
	h := s.Host(s.Lease.Open.Out)
	s.Logf("%s is pinned", h.Name)
	h.Mark.Pinned = &membership.Say{Value: true, By: "owner", At: s.soon()}
}

// dies makes h3 one that etcd will not see again, and its death known.
func dies(s *Sim, how func(h *Host)) {
	h := s.Host("h3")
	h.Bad, h.brokeAt = false, s.soon()
	how(h)
	for range 4 {
		s.pass()
	}
	s.asks(membership.Request{Dead: "h3", Member: "m-h3"})
}

func revives(s *Sim) {
	h := s.Host("h3")
	s.Logf("h3 comes back")
	h.Up, h.Agent, h.Broken, h.mendedAt = true, true, false, s.soon()
}

var swapping = kind{"swap", 3, 3, "h3", func(s *Sim) {}, pinned}

// asking are the kinds that only the owner asks for: from two voters to three,
// from four to three, and a dead one out of three, with its machine gone or with
// an agent that answers.
var asking = []kind{
	{"grow", 2, 3, "", func(s *Sim) { s.Host("h2").Bad = false; s.asks(membership.Request{Target: 3}) }, func(s *Sim) {
		h := s.Host(s.Lease.Open.In)
		s.Logf("%s is no longer eligible", h.Name)
		h.Mark.Eligible = &membership.Say{By: "owner", At: s.soon()}
	}},
	{"grow-from-one", 1, 2, "", func(s *Sim) { s.Host("h1").Bad = false; s.asks(membership.Request{Target: 3}) }, func(s *Sim) {
		s.asks(membership.Request{Target: 1})
	}},
	{"shrink", 4, 3, "h4", func(s *Sim) { s.asks(membership.Request{Target: 3}) }, func(s *Sim) {
		s.asks(membership.Request{Target: 5})
	}},
	{"dead-machine", 3, 2, "h3", func(s *Sim) { dies(s, s.powerOff) }, revives},
	{"dead-etcd", 3, 2, "h3", func(s *Sim) { dies(s, func(h *Host) { h.Running, h.Broken = false, true }) }, revives},
	{"dead-silent", 3, 2, "h3", func(s *Sim) { dies(s, func(h *Host) { h.Running, h.Broken = false, true }) }, func(s *Sim) {
		pinned(s)
		h := s.Host("h3") // fenced, perhaps, and for a while nobody can lift it
		h.Agent, h.brokeAt = false, s.soon()
		s.late = append(s.late, lateCall{s.Now.Add(100 * time.Second), "agent of h3 answers", func() { h.Agent, h.mendedAt = true, s.soon() }})
	}},
}

// run is a run in which nothing else goes wrong. With turn, what turns that kind
// back happens as soon as the operation has that step. It gives the number of
// points and of calls that were passed.
func run(t *testing.T, k kind, turn string, faults ...fault) (points, calls int) {
	t.Helper()
	s := ran(t, k, turn, faults...)
	return s.points, s.calls
}

// ran is the same, and gives the whole run.
func ran(t *testing.T, k kind, turn string, faults ...fault) *Sim {
	t.Helper()
	swaps.one(0)
	s := newSim(1, k.voters, 2)
	s.Leader = fmt.Sprintf("m-h%d", k.voters) // the one that goes, so that leadership has to move
	failed := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s turned at %q, %v: %s\n%s\nagain: SUFFRAGE_SEEDS=%d go test -run '^%s$' ./membership/memtest", k, turn, faults, fmt.Sprintf(format, args...), s.Trace(80),
			wanted(), strings.ReplaceAll(t.Name(), "/", "$/^"))
	}
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(Violation)
			if !ok {
				panic(r)
			}
			failed("%s", string(v))
		}
	}()
	stays, troubled, mended := s.Host("h2"), false, time.Time{}
	turned, late := false, false
	pass := func() {
		s.pass()
		if len(s.History) > 0 {
			s.Request = nil // one operation is enough
			for _, h := range s.Hosts {
				h.Pressed = 0
			}
		}
		if stays.Gone && s.Now.After(mended) {
			s.mend(stays, 1)
		}
		op := s.Lease.Open
		if turn == "" || op == nil || turned {
			return
		}
		if turned = turn == "asked" && !op.Asked.IsZero() || slices.ContainsFunc(op.Steps, func(r membership.StepRecord) bool { return r.Name == turn }); turned {
			late = len(s.History) > 0
			k.turn(s)
		}
	}
	freeze := func(rounds int) { // until another has taken the Lease and gone on
		s.nested = true
		for range rounds {
			pass()
		}
		s.nested = false
	}
	s.point = func(p *Controller, name string) {
		for _, f := range faults {
			switch {
			case s.points != f.at || s.nested:
			case f.what == "crash":
				s.Logf("crash at point %d, %s", f.at, name)
				panic(crash{})
			case f.what == "freeze":
				s.Logf("frozen at point %d, %s", f.at, name)
				freeze(12)
			case f.what == "trouble":
				s.broke(stays, "gone from the network")
				stays.Gone, troubled, mended = true, true, s.Now.Add(time.Minute)
			}
		}
	}
	fates := map[string]fate{"fails": fateFails, "unanswered": fateUnanswered, "late": fateLate}
	for _, p := range s.Controllers {
		p.delay = func() time.Duration { return 18 * time.Second }
		p.stall = func() {
			if slices.Contains(faults, fault{"stalled", s.calls}) && !s.nested {
				s.Logf("frozen with call %d on its way", s.calls)
				freeze(24)
				s.stalls++
			}
		}
		p.fate = func(late bool) fate {
			s.calls++
			for _, f := range faults {
				if w, is := fates[f.what]; is && s.calls == f.at && (late || w != fateLate) {
					return w
				}
			}
			return fateDone
		}
	}
	for _, f := range faults {
		if f.what == "actor" {
			s.Actor.fate = func(bool) fate { return fateLate }
			s.Actor.delay = func() time.Duration { return time.Duration(f.at) * time.Second }
		}
	}
	k.begin(s)
	for range 300 {
		pass()
		if len(s.History) > 0 && s.Lease.Open == nil {
			break
		}
	}
	if k.after < k.voters && k.out == "h3" {
		revives(s) // a dead one that was kept serves again, and one that was removed comes to nothing
	}
	for range 8 { // what was called for may come until here
		s.pass()
	}
	if stays.Gone {
		s.mend(stays, 1)
		s.pass()
		s.pass()
	}
	want, back := "map[completed:1]", turned && !late
	if k.out != "" {
		back = turned && !s.Removed["m-"+k.out]
	}
	if s.Policy.Target = k.after; back {
		want, s.Policy.Target = "map[undone:1]", k.voters
	}
	if got := fmt.Sprint(s.outcomes()); got != want {
		if !troubled || got != "map[undone:1]" {
			failed("operations ended %v, want %v", got, want)
		}
		s.Policy.Target = k.voters
	}
	if why := s.unhealthy(); why != "" {
		failed("%s", why)
	}
	return s
}

// byThemselves are the kinds once more where K3s joins, promotes and removes.
func byThemselves() (kinds []kind) {
	for _, k := range append([]kind{swapping}, asking[0], asking[2]) {
		begin := k.begin
		k.name = "k3s-" + k.name
		k.begin = func(s *Sim) {
			s.asK3s()
			begin(s)
		}
		kinds = append(kinds, k)
	}
	return append(kinds, regrading...)
}

// regrading are a step down by itself, of a leader that is short of memory, and a
// step up that the owner asks for. What turns them back is a pause before the
// restart, and after it that K3s does not start so.
var regrading = []kind{
	{"k3s-step-down", 3, 3, "", func(s *Sim) {
		s.asK3s()
		h := s.Host("h3")
		h.Bad, h.Pressed, h.PressedAt = false, 1, s.Now.Add(-time.Hour)
	}, startsOnly},
	{"k3s-step-up", 3, 3, "", func(s *Sim) {
		s.asK3s()
		h := s.Host("h3")
		h.Bad, h.settings, h.runs, h.stepped = false, fitness.EtcdOnly, fitness.EtcdOnly, true
		s.asks(membership.Request{Regrade: "h3", To: fitness.Full})
	}, startsOnly},
}

func startsOnly(s *Sim) {
	if s.Lease.Open.Called.IsZero() {
		s.Logf("paused")
		s.Policy.Paused = &membership.Say{Value: true, By: "owner", At: s.soon()}
		return
	}
	h := s.Host("h3")
	s.broke(h, "its K3s ends, and does not start with its grade any more")
	h.Running, h.bad = false, s.Lease.Open.To
}

// turns are the steps of an operation's record at which it is made to turn
// back; at the last two it can no longer.
var turns = []string{"", "snapshot", "join", "promote", "soak", "step-down", "remove", "clean-up", "record"}

// TestEveryCrash ends the controller at every named point of a swap, and of the
// way back from each of its steps: at each one, and at each pair of them. After
// a crash there are more points than without; every one that the run comes by
// is a second. The pairs of the ways back are left to make sim.
func TestEveryCrash(t *testing.T) { everyKind(t, everyCrash) }

// everyKind is once for a swap, and once for each kind that the owner asks for.
func everyKind(t *testing.T, every func(t *testing.T, k kind, turn string)) {
	for _, k := range slices.Concat([]kind{swapping}, asking, byThemselves()) {
		for _, turn := range append(turns, "asked") {
			name := "turn=" + turn
			if k.name != "swap" {
				name = k.name + "/" + name
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				every(t, k, turn)
			})
		}
	}
}

func everyCrash(t *testing.T, k kind, turn string) {
	began, runs := time.Now(), 1
	n, _ := run(t, k, turn)
	for i := 1; i <= n; i++ {
		m, _ := run(t, k, turn, fault{"crash", i})
		runs++
		if raced || turn != "" && !everything() {
			continue
		}
		for j := i + 1; j <= m; j++ {
			run(t, k, turn, fault{"crash", i}, fault{"crash", j})
			runs++
		}
	}
	t.Logf("%d points, %d runs, %s", n, runs, time.Since(began).Round(time.Millisecond))
}

// TestEveryFault does the same with a controller that is frozen past its Lease
// and thawed, with a voter that goes away for a minute, and with a call that
// fails, has no answer, is done late, or, an order, when its giver has long lost
// the Lease.
func TestEveryFault(t *testing.T) {
	if raced {
		t.Skip("one goroutine: the race detector finds nothing here; make test runs it without")
	}
	everyKind(t, func(t *testing.T, k kind, turn string) {
		points, calls := run(t, k, turn)
		for i := 1; i <= points; i++ {
			run(t, k, turn, fault{"freeze", i})
			if k.voters > 3 || k.after == 3 && k.voters == 3 { // or nobody but the one in trouble holds the quorum
				run(t, k, turn, fault{"trouble", i})
			}
			for j := i + 1; everything() && j <= points; j++ {
				run(t, k, turn, fault{"freeze", i}, fault{"crash", j})
			}
		}
		for _, what := range []string{"fails", "unanswered", "late", "stalled"} {
			for i := 1; i <= calls; i++ {
				s := ran(t, k, turn, fault{what, i})
				if what == "stalled" && s.stalls == 0 {
					continue // it was no order, and nothing went wrong
				}
				for j := 1; everything() && j <= points; j++ {
					run(t, k, turn, fault{what, i}, fault{"crash", j})
				}
			}
		}
	})
}

// Whoever acts on a request may have sent the removal just before the request is
// withdrawn: then it is done, and the newcomer must still be there.
func TestRemovalLandsAfterItsWithdrawal(t *testing.T) {
	if raced {
		t.Skip("as above")
	}
	landed := 0
	for delay := range 20 {
		for at := range 60 {
			if s := ran(t, swapping, "asked", fault{"actor", delay}, fault{[]string{"crash", "freeze"}[at%2], at}); s.Removed["m-h3"] {
				landed++
			}
		}
	}
	if landed == 0 {
		t.Error("nothing landed, so nothing was tested")
	}
}

// etcd promotes a learner from 90 % of the leader's log on, frozen or not. Beside
// one voter that would end all writing, so it is not asked to.
func TestSecondVoterIsLevel(t *testing.T) {
	for _, stop := range []func(h *Host){func(h *Host) { h.Stuck = true }, func(h *Host) { h.Frozen = true }} {
		s := newSim(1, 1, 1)
		s.Host("h1").Bad = false
		s.asks(membership.Request{Target: 3})
		stopped := false
		for range 100 {
			s.Step(time.Second)
			for _, m := range s.Members {
				if m.Learner && !stopped && s.Host(m.Host).Running {
					stopped, m.Published, m.Index = true, true, s.Index*92/100
					s.Logf("%s stops, ready by etcd's word", m.ID)
					stop(s.Host(m.Host))
				}
			}
			s.pass()
		}
		if got := fmt.Sprint(s.outcomes()); !stopped || got != "map[undone:1]" || len(s.Voters()) != 1 || !s.Serves() {
			t.Errorf("operations ended %s, stopped %t\n%s", got, stopped, s.Trace(60))
		}
	}
}
