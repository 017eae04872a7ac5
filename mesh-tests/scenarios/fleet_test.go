package scenarios

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// far is a deadline beyond what a busy machine takes for anything here.
const far = 6 * time.Minute

// fleet is one on which nothing is wrong at first, and clients that write.
type fleet struct {
	*lab.Fleet
	t    *testing.T
	seat string // the host at which the owner sits
}

// five hosts, of which three vote and two have a controller.
var five = lab.Plan{Hosts: 5, Voters: 3, Controllers: []string{"h1", "h2"}}

// begin starts a fleet and waits until it is well.
func begin(t *testing.T, p lab.Plan) *fleet {
	t.Helper()
	lab.Need(t)
	p.Program = os.Getenv("SUFFRAGE_BIN")
	if p.Program == "" {
		t.Skip("SKIPPED, nothing was proven: SUFFRAGE_BIN is not set: make mesh")
	}
	var err error
	if p.Dir, err = os.MkdirTemp("", ""); err != nil { // a short path, for its sockets
		t.Fatal(err)
	}
	t.Cleanup(func() { keepLogs(t, p.Dir) })
	f := &fleet{t: t, seat: "h1"}
	if f.Fleet, err = lab.NewFleet(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	f.until("all are fit", func(s lab.Status) bool { return s.Fit(f.names()...) && s.Controller != nil })
	f.clients()
	return f
}

// names are those of all hosts.
func (f *fleet) names() []string {
	var out []string
	for _, n := range f.Nodes {
		out = append(out, n.Name)
	}
	return out
}

// do fails the test when a fault could not be made.
func (f *fleet) do(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// wait waits until something is so.
func (f *fleet) wait(what string, is func() bool) {
	f.t.Helper()
	for began := time.Now(); !is(); time.Sleep(300 * time.Millisecond) {
		if time.Since(began) > far {
			f.t.Fatalf("never: %s", what)
		}
	}
	f.t.Logf("%s  %s", time.Now().Format("15:04:05"), what)
}

// until asks for the status at the owner's seat until it is as it should be.
func (f *fleet) until(what string, is func(lab.Status) bool) lab.Status {
	f.t.Helper()
	var s lab.Status
	var err error
	defer func() {
		if f.t.Failed() {
			f.t.Logf("last seen: %v %s", err, s.Decision)
		}
	}()
	f.wait(what, func() bool {
		s, err = f.Node(f.seat).Status(f.t.Context())
		return err == nil && is(s)
	})
	return s
}

// down waits until the controller has called a voter down, which takes a window,
// and checks that it plans nothing.
func (f *fleet) down(host string) {
	f.t.Helper()
	f.wait(host+" is down, and stays a voter", func() bool {
		d, err := f.Decision(f.t.Context())
		if err == nil && d.Plan != nil {
			f.t.Errorf("planned: %s", d)
		}
		return err == nil && slices.ContainsFunc(d.Refusals, func(r membership.Refusal) bool {
			return r.Code == membership.VoterDown && r.Subject == host
		})
	})
}

// swapped waits until a voter was swapped out. Before that an operation may have
// turned back, since on a busy machine the newcomer can be slow too; then the
// members have to be those from before.
func (f *fleet) swapped(out string) membership.Operation {
	f.t.Helper()
	seen := map[string]bool{}
	var done membership.Operation
	f.wait(out+" is swapped out", func() bool {
		ops, _ := f.Operations(f.t.Context()) // without an answer it is asked again
		for _, op := range ops {
			if seen[op.ID] {
				continue
			}
			seen[op.ID] = true
			f.t.Logf("%s: %s → %s %s %s", op.ID, op.Out, op.In, op.Outcome, op.TurnedBack)
			switch {
			case op.Out != out:
				f.t.Errorf("%s was swapped, not %s: %s", op.Out, out, op.Why)
			case op.Outcome == membership.Completed:
				done = op
			default:
				f.unchanged(op)
			}
		}
		return done.ID != ""
	})
	if slices.Contains(done.MembersAfter, done.OutMember) || !slices.Contains(done.MembersAfter, done.InMember) || len(done.MembersAfter) != len(done.MembersBefore) {
		f.t.Errorf("members %v, before %v: %s out, %s in", done.MembersAfter, done.MembersBefore, done.OutMember, done.InMember)
	}
	return done
}

// unchanged checks an operation that turned back.
func (f *fleet) unchanged(op membership.Operation) {
	f.t.Helper()
	if op.Outcome != membership.Undone || op.TurnedBack == "" || !slices.Equal(op.MembersBefore, op.MembersAfter) {
		f.t.Errorf("%s %s (%s): members %v, before %v", op.ID, op.Outcome, op.TurnedBack, op.MembersAfter, op.MembersBefore)
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
	f.t.Logf("%s: %s → %s %s %s (%s)", ops[0].ID, ops[0].Out, ops[0].In, ops[0].Outcome, ops[0].TurnedBack, said)
	return ops[0]
}

// during does something once, when the journal is as it should be; done ends the
// waiting and tells whether it was.
func (f *fleet) during(when func(membership.Operation) bool, do func(membership.Operation) error) (done func() bool) {
	ended := make(chan bool, 1)
	ctx, stop := context.WithCancel(context.Background())
	f.t.Cleanup(stop)
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			op, err := f.Open(ctx)
			if err == nil && op != nil && when(*op) {
				if err := do(*op); err != nil {
					f.t.Error(err)
				}
				ended <- true
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() bool { stop(); return <-ended }
}

// refused checks that a swap is, because of the newcomer.
func (f *fleet) refused(code membership.Code, out, in string) {
	f.t.Helper()
	said, err := f.Node(f.seat).Suffrage(f.t.Context(), "swap", out, in, "--yes")
	if want := fmt.Sprintf("%s(%s", code, in); err == nil || !strings.Contains(said, want) {
		f.t.Errorf("want %s): %v: %s", want, err, said)
	}
}

// quiet checks that nothing was swapped.
func (f *fleet) quiet() {
	f.t.Helper()
	ops, err := f.Operations(f.t.Context())
	f.do(err)
	for _, op := range ops {
		f.t.Errorf("%s: %s → %s %s: %s", op.ID, op.Out, op.In, op.Outcome, op.Why)
	}
}

// back waits until the fleet is well again after a voter was away. Nothing may
// have been planned meanwhile; but it was unfit, so where that lasted a whole
// window it may be swapped out now that it answers.
func (f *fleet) back(away string) {
	f.t.Helper()
	voters := []string{"h1", "h2", "h3"}
	f.until(away+" is back, and all answer", func(s lab.Status) bool {
		ops, err := f.Operations(f.t.Context())
		if err != nil || s.Decision.Operation != nil {
			return false
		}
		voters = []string{"h1", "h2", "h3"}
		for _, op := range ops {
			if op.Out != away {
				f.t.Errorf("%s was swapped, not %s: %s", op.Out, away, op.Why)
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
// answer, one leads, nothing is under way, and every other host is at rest.
func (f *fleet) well(voters ...string) {
	f.t.Helper()
	f.until(strings.Join(voters, " ")+" vote, and all answer", func(s lab.Status) bool {
		return slices.Equal(s.Voters(), voters) && s.Leader != "" && s.Controller != nil && s.Decision.Operation == nil && s.Answering(f.names()...)
	})
	for _, n := range f.Nodes {
		state, err := n.Member(f.t.Context())
		f.do(err)
		if vote := slices.Contains(voters, n.Name); state.Running != vote || n.Fenced() == vote {
			f.t.Errorf("%s: etcd runs: %v, fenced: %v; it votes: %v", n.Name, state.Running, n.Fenced(), vote)
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

// clients put and get until the test ends; then what they saw is judged.
func (f *fleet) clients() {
	c := &history.Clients{Client: f.Client, Prefix: "/mesh/"}
	ctx, stop := context.WithCancel(context.Background())
	var h history.History
	var seen history.Writes
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h, seen = c.Run(ctx)
	}()
	f.t.Cleanup(func() {
		stop()
		<-ended
		history.Judge(f.t, h, seen, lab.Kept())
	})
}

// keepLogs leaves the hosts' logs and recorded decisions of a failed test.
func keepLogs(t *testing.T, dir string) {
	if !t.Failed() {
		return
	}
	to, err := os.MkdirTemp(lab.Kept(), "suffrage-mesh-*")
	if err != nil {
		t.Error(err)
		return
	}
	for _, pattern := range []string{"*/*.log", "*/data/decisions/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Error(err)
		}
		for _, file := range files {
			name, err := filepath.Rel(dir, file)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)
			}
			if err == nil {
				err = os.Rename(file, filepath.Join(to, name))
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("logs and decisions: %s", to)
}
