package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// down waits until the controller has called a voter down, which takes a window,
// and checks that it plans nothing.
func (f *fleet) down(host string) {
	f.t.Helper()
	f.wait(host+" is down, and stays a voter", func() bool {
		d, err := f.Decision(f.t.Context())
		if err == nil && d.Plan != nil {
			f.fail("planned: %s", d)
		}
		return err == nil && calledDown(d, host)
	})
}

func calledDown(d membership.Decision, host string) bool {
	return slices.ContainsFunc(d.Refusals, func(r membership.Refusal) bool { return r.Code == membership.VoterDown && r.Subject == host })
}

func oneLeads(s lab.Status) bool { return s.Leader != "" }

// leader is the host whose etcd leads.
func (f *fleet) leader() string {
	f.t.Helper()
	return f.until("one leads", oneLeads).Leader
}

// followers are two voters of the first three that do not lead.
func (f *fleet) followers() (string, string) {
	f.t.Helper()
	leader := f.leader()
	rest := slices.DeleteFunc([]string{"h1", "h2", "h3"}, func(v string) bool { return v == leader })
	return rest[0], rest[1]
}

// other is one of the two hosts with a controller that is not this one.
func other(host string) string {
	if host == "h1" {
		return "h2"
	}
	return "h1"
}

// swapped waits until a voter was swapped out.
func (f *fleet) swapped(out string) membership.Operation { return f.swappedOneOf(out) }

// swappedOneOf waits until one of these voters was swapped out. Before that an
// operation may have turned back, since on a busy machine the newcomer can be slow
// too; then the members have to be those from before.
func (f *fleet) swappedOneOf(outs ...string) membership.Operation {
	f.t.Helper()
	seen := map[string]bool{}
	var done membership.Operation
	f.wait(strings.Join(outs, " or ")+" is swapped out", func() bool {
		ops, _ := f.Operations(f.t.Context()) // without an answer it is asked again
		for _, op := range ops {
			if seen[op.ID] {
				continue
			}
			seen[op.ID] = true
			f.t.Logf("%s: %s → %s %s %s", op.ID, op.Out, op.In, op.Outcome, op.TurnedBack)
			if !slices.Contains(outs, op.Out) {
				f.fail("%s was swapped, not %s: %s", op.Out, strings.Join(outs, " or "), op.Why)
			}
			if op.Outcome == membership.Completed {
				done = op
			} else {
				f.unchanged(op)
			}
		}
		return done.ID != ""
	})
	f.came()
	return done
}

// unchanged checks that an operation turned back; Recording.Judge looks at the
// members that every operation left.
func (f *fleet) unchanged(op membership.Operation) {
	f.t.Helper()
	if op.Outcome != membership.Undone {
		f.fail("%s %s (%s)", op.ID, op.Outcome, op.TurnedBack)
	}
}

// ask has the owner ask for a swap until it is taken, and gives how it ended.
func (f *fleet) ask(out, in string) membership.Operation {
	f.t.Helper()
	before, err := f.Operations(f.t.Context())
	f.do(err)
	var said string
	f.wait(fmt.Sprintf("a swap of %s for %s has ended", out, in), func() bool {
		_, err := f.Node(f.seat).Suffrage(f.t.Context(), "swap", out, in, "--yes", "--by", "anna")
		if err != nil {
			said = err.Error()
		}
		ops, e := f.Operations(f.t.Context())
		return e == nil && len(ops) > len(before)
	})
	ops, err := f.Operations(f.t.Context())
	f.do(err)
	f.came()
	f.t.Logf("%s: %s → %s %s %s (%s)", ops[0].ID, ops[0].Out, ops[0].In, ops[0].Outcome, ops[0].TurnedBack, said)
	return ops[0]
}

// completed gives the operation that carried a swap out. One that turned back left
// the members as they were, since on a busy machine a newcomer may be slow; its
// quarantine lifted, the same swap has to succeed.
func (f *fleet) completed(op membership.Operation) membership.Operation {
	f.t.Helper()
	if op.Outcome == membership.Completed {
		return op
	}
	f.unchanged(op)
	f.eventually(f.seat, "clear-quarantine", op.In)
	if op = f.ask(op.Out, op.In); op.Outcome != membership.Completed {
		f.fail("asked for again: %s %s (%s)", op.ID, op.Outcome, op.TurnedBack)
		f.t.FailNow() // what comes next needs the voters that it leaves
	}
	return op
}

// during makes a fault once, when the journal is as it should be; done ends the
// waiting and tells whether it was. The fault begins then, however much later it
// is named.
func (f *fleet) during(when func(membership.Operation) bool, do func(membership.Operation) error) (done func() bool) {
	ended := make(chan bool, 1)
	ctx, stop := context.WithCancel(context.Background())
	f.t.Cleanup(stop)
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			op, err := f.Open(ctx)
			if err == nil && op != nil && when(*op) {
				f.faultBegins()
				if err := do(*op); err != nil {
					f.fail("%v", err)
				}
				ended <- true
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() bool { stop(); return <-ended }
}

// refused checks that a swap is, by this code for this subject.
func (f *fleet) refused(out, in string, code membership.Code, subject string) {
	f.t.Helper()
	said, err := f.Node(f.seat).Suffrage(f.t.Context(), "swap", out, in, "--yes")
	if want := fmt.Sprintf("%s(%s)", code, subject); err == nil || !strings.Contains(said, want) {
		f.fail("want %s: %v: %s", want, err, said)
	}
}

// quiet checks that nothing was swapped until now; the recording's judge, that
// nothing was planned.
func (f *fleet) quiet() {
	f.t.Helper()
	if w := f.watched.Load(); w != nil {
		at := time.Since(w.began)
		f.mu.Lock()
		f.rules.Quiet = at
		f.mu.Unlock()
	}
	ops, err := f.Operations(f.t.Context())
	f.do(err)
	for _, op := range ops {
		f.fail("%s: %s → %s %s: %s", op.ID, op.Out, op.In, op.Outcome, op.Why)
	}
}

// back waits until the fleet is well again after a voter was away. Nothing may
// have been planned meanwhile; but it was unfit, so where that lasted a whole
// window it may be swapped out now that it answers. Pinned, it is not from the next
// decision on, so that what votes then does not change any more.
func (f *fleet) back(away string) {
	f.t.Helper()
	f.eventually(f.seat, "host", "pin", away)
	pinned := time.Now()
	voters := []string{"h1", "h2", "h3"}
	f.until(away+" is back, and all answer", func(s lab.Status) bool {
		d, err := f.Decision(f.t.Context())
		if err != nil || d.Operation != nil || !d.At.After(pinned) {
			return false
		}
		ops, err := f.Operations(f.t.Context())
		if err != nil {
			return false
		}
		voters = []string{"h1", "h2", "h3"}
		for _, op := range ops {
			if op.Out != away {
				f.fail("%s was swapped, not %s: %s", op.Out, away, op.Why)
			}
			if op.Outcome == membership.Completed {
				voters = f.after(op)
			}
		}
		return slices.Equal(s.Voters(), voters) && s.Answering(f.names()...)
	})
	f.well(voters...)
}

// well waits until the fleet is as it has to be after a fault: these vote, all
// answer, one leads, nothing is under way, a write is acknowledged, and every other
// host is at rest.
func (f *fleet) well(voters ...string) {
	f.t.Helper()
	f.until(strings.Join(voters, " ")+" vote, and all answer", func(s lab.Status) bool {
		return slices.Equal(s.Voters(), voters) && s.Leader != "" && s.Controller != nil && s.Decision.Operation == nil && s.Answering(f.names()...)
	})
	f.wait("a write is acknowledged", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), lookLimit)
		defer cancel()
		_, err := f.Client.Put(ctx, "/mesh/well", "")
		return err == nil
	})
	f.came()
	f.mu.Lock()
	f.since, f.begun = time.Time{}, false // nothing has to come any more
	f.mu.Unlock()
	for _, n := range f.Nodes {
		state, err := n.Member(f.t.Context())
		f.do(err)
		if vote := slices.Contains(voters, n.Name); state.Running != vote || n.AtRest() == vote {
			f.fail("%s: etcd runs: %v, nothing can start it: %v; it votes: %v", n.Name, state.Running, n.AtRest(), vote)
		}
	}
}

// after are the voters that an operation leaves of the first three.
func (f *fleet) after(op membership.Operation) []string {
	voters := []string{"h1", "h2", "h3"}
	if op.Outcome == membership.Completed {
		voters = append(slices.DeleteFunc(voters, func(v string) bool { return v == op.Out }), op.In)
		slices.Sort(voters)
	}
	return voters
}
