package scenarios

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/lab"
	"suffrage/mesh-tests/record"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// far is a deadline beyond what a busy machine takes for anything here.
const far = 6 * time.Minute

// fleet is one on which nothing is wrong at first, and clients that write.
type fleet struct {
	*lab.Fleet
	t    *testing.T
	seat string // the host at which the owner sits

	endClients func()
	watched    atomic.Pointer[watcher] // nil while no clients write
	pace       time.Duration           // of a put, before any fault

	mu    sync.Mutex
	run   record.Run
	rules record.Rules
	since time.Time // of the last fault, or of its end
	begun bool      // it is of one that was not named yet
}

// five hosts, of which three vote and two have a controller.
var five = lab.Plan{Hosts: 5, Voters: 3, Controllers: []string{"h1", "h2"}}

// begin starts a fleet and waits until all of it answers and is measured.
func begin(t *testing.T, p lab.Plan) *fleet {
	t.Helper()
	f := start(t, p)
	f.until("all answer", func(s lab.Status) bool { return s.Answering(f.names()...) && s.Leader != "" && s.Controller != nil })
	f.clients()
	return f
}

// beginSoon does not wait for a window of samples: for faults after which nothing
// is to be moved, whatever was measured before.
func beginSoon(t *testing.T, p lab.Plan) *fleet {
	t.Helper()
	f := start(t, p)
	f.up()
	f.clients()
	return f
}

// up waits until all answer, measured or not.
func (f *fleet) up() {
	f.t.Helper()
	f.until("all are up", func(s lab.Status) bool { return s.Up(f.names()...) && s.Leader != "" && s.Controller != nil })
}

func start(t *testing.T, p lab.Plan) *fleet {
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
	f := &fleet{t: t, seat: "h1", rules: record.Rules{Least: p.Voters, Most: p.Voters + 1, Clusters: 1}}
	f.keepRun(p.Dir)
	if f.Fleet, err = lab.NewFleet(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			f.fail("%v", err)
		}
	})
	return f
}

// beginFit waits until all hosts are fit, too: where the readings decide who is
// swapped, only the fault may make one unfit.
func beginFit(t *testing.T, p lab.Plan) *fleet {
	t.Helper()
	f := begin(t, p)
	f.until("all are fit", func(s lab.Status) bool { return s.Fit(f.names()...) })
	f.pace = f.putTime()
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

// do ends the test where the lab could not do what it was told.
func (f *fleet) do(err error) {
	f.t.Helper()
	if err != nil {
		f.fail("%v", err)
		f.t.FailNow()
	}
}

// fault notes one that was made, or its end, in the words of the scenario. It
// began now, or when faultBegins was called.
func (f *fleet) fault(what string, err error) {
	f.t.Helper()
	f.do(err)
	f.t.Logf("%s  FAULT %s", time.Now().Format("15:04:05"), what)
	f.mu.Lock()
	f.run.Faults = append(f.run.Faults, what)
	named := f.begun
	f.begun = false
	f.mu.Unlock()
	if !named {
		f.stamp()
	}
}

// faultBegins is for one that is named only later.
func (f *fleet) faultBegins() {
	f.stamp()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = true
}

// ended is what a fault is when it is over.
func (f *fleet) ended(what string, err error) {
	f.t.Helper()
	f.do(err)
	f.t.Logf("%s  ENDED %s", time.Now().Format("15:04:05"), what)
	f.stamp()
}

// stamp notes that a fault begins or ends now.
func (f *fleet) stamp() {
	f.mu.Lock()
	f.since = time.Now()
	f.mu.Unlock()
	if w := f.watched.Load(); w != nil {
		w.fault()
	}
}

// heal ends all that was done to the network.
func (f *fleet) heal() {
	f.t.Helper()
	f.ended("the network is as at first", f.Heal())
}

// came notes how long what has to come of the last fault, or of its end, took:
// several things may have to, and the last of them counts.
func (f *fleet) came() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.since.IsZero() {
		f.run.Well = max(f.run.Well, time.Since(f.since).Seconds())
	}
}

// phase has other numbers of voters be allowed from now on.
func (f *fleet) phase(least, most int) {
	if w := f.watched.Load(); w != nil {
		at := time.Since(w.began)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.rules.Phases = append(f.rules.Phases, record.Phase{From: at, Least: least, Most: most})
	}
}

// outage begins a time without a quorum, in which writes may fail; over ends it.
func (f *fleet) outage() (over func()) {
	began := f.watched.Load().began
	from := time.Since(began)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.rules.Outages = append(f.rules.Outages, history.Span{From: from, To: time.Since(began)})
	}
}

// fail fails the test and goes on.
func (f *fleet) fail(format string, args ...any) {
	f.t.Helper()
	text := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run.Failed == "" {
		f.run.Failed = text
	}
	f.t.Error(text)
}

// wait waits until something is so.
func (f *fleet) wait(what string, is func() bool) {
	f.t.Helper()
	for began := time.Now(); !is(); time.Sleep(300 * time.Millisecond) {
		if time.Since(began) > far {
			f.fail("never: %s", what)
			f.t.FailNow()
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
