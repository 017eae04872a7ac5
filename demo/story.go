package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/host"
)

const (
	// poll is how often the controllers are asked.
	poll = 200 * time.Millisecond
	// startLimit bounds the time until etcd takes the owner's marks.
	startLimit = 90 * time.Second
	// restarts is how often a controller may end and be started again. One that
	// loses its leadership ends by design, and systemd would start it again.
	restarts = 20
	// again is how long after its end a member is started again, as its unit on a
	// real host would.
	again = time.Second
	// tries is how often it may end before a run that waits for a decision ends too.
	tries = 3
)

// story is one run: the fleet and what has been told of it so far.
type story struct {
	o          Options
	fleet      *Fleet
	delays     *Delays
	tell       *narrator
	supervisor *Supervisor
	units      map[string]*Unit // by host

	mu     sync.Mutex // agents have members started while the story goes on
	disks  []*SlowDisk
	slowed bool // the hosts that are to be slow are

	serving    errgroup.Group // the disks
	restarted  int
	memberEnds map[string]int // by host, so that one that cannot start is not told of for ever
	decision   membership.Decision
	ended      *membership.Operation
	writes     Writes
	writing    func() Writes // stops the writer
	trouble    error         // why there is no newer decision
	told       map[string]fitness.Status
}

// play starts everything and follows the decisions to the end.
func (s *story) play(ctx context.Context) (Result, error) {
	f := s.fleet
	s.tell.say("five hosts on %s to %s; files and logs in %s", f.Hosts[0].Mesh, f.Hosts[hostCount-1].Mesh, f.Dir)
	for _, n := range s.o.Notes {
		s.tell.say("%s", n)
	}
	if s.o.Until == UntilSteady {
		s.slowDown()
	}
	if err := s.start(ctx); err != nil {
		return s.result(), err
	}
	err := s.follow(ctx)
	s.stopWriting()
	return s.result(), err
}

func (s *story) result() Result { return Result{s.decision, s.ended, s.writes} }

// start starts agents and members, marks the hosts, then starts the controllers.
func (s *story) start(ctx context.Context) error {
	for _, h := range s.fleet.Hosts {
		if err := s.process(ctx, h, "agent"); err != nil {
			return err
		}
	}
	// Create asks the agents, and h1 has to be the first.
	for _, h := range s.fleet.Voters() {
		if err := s.create(ctx, h); err != nil {
			return err
		}
	}
	for _, h := range s.fleet.Voters() {
		if err := s.units[h.Name].Start(ctx); err != nil {
			return err
		}
	}
	s.tell.say("started 5 agents and, on %s, etcd members; waiting for etcd", names(s.fleet.Voters()))
	if err := s.mark(ctx); err != nil {
		return err
	}
	s.tell.say("etcd answers; marked as eligible, as the owner would: h1 h2 h3 h4 h5")
	for _, h := range s.fleet.Hosts {
		if h.Controller {
			if err := s.process(ctx, h, "controller"); err != nil {
				return err
			}
		}
	}
	s.tell.say("started controllers on h1 and h2: one leads, one stands by; a window is %d samples, %v", fitness.WindowSize, s.o.window())
	s.tell.say("the page: http://%s:%d/", s.fleet.Hosts[0].Real, PagePort)
	return nil
}

// listenUnits makes the unit of every host's member, and binds their sockets.
func (s *story) listenUnits() (map[string]net.Listener, error) {
	s.units, s.memberEnds = map[string]*Unit{}, map[string]int{}
	out := map[string]net.Listener{}
	for _, h := range s.fleet.Hosts {
		l, err := h.listenUnit()
		if err != nil {
			for _, l := range out {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		out[h.Name] = l
		s.units[h.Name] = NewUnit(s.supervisor, h.Path(DataDir), func(ctx context.Context) (*Child, error) {
			return s.launch(ctx, h, "member")
		})
		s.units[h.Name].Restart = again
	}
	return out, nil
}

// create makes a host's member of the cluster, as its owner would. Until every
// agent answers it is refused and changes nothing, so it is given again.
func (s *story) create(ctx context.Context, h Host) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no cluster could be created within %v", startLimit))
	defer cancel()
	text := "create " + strings.Join(slices.Sorted(maps.Keys(s.fleet.InitialCluster())), ",")
	for {
		said, err := exec.CommandContext(ctx, s.o.Program, "cluster", "create", "--config", h.Path(ConfigFile), "--confirm", text).CombinedOutput()
		if err == nil {
			return nil
		}
		select {
		case c := <-s.supervisor.Died():
			return c.Exit()
		case <-ctx.Done():
			if ctx.Err() == context.Canceled {
				return ctx.Err()
			}
			return fmt.Errorf("demo: host %s: %w: %w:\n%s", h.Name, context.Cause(ctx), err, said)
		case <-time.After(poll):
		}
	}
}

// process starts `suffrage verb` on a host.
func (s *story) process(ctx context.Context, h Host, verb string) error {
	_, err := s.launch(ctx, h, verb)
	return err
}

// launch starts a process, behind SlowExec where its disk is to be slow.
func (s *story) launch(ctx context.Context, h Host, verb string) (*Child, error) {
	p := Process{Name: h.Name + " " + verb, Log: h.Path(verb + ".log")}
	p.Args = []string{s.o.Program, verb, "--config", h.Path(ConfigFile)}
	if _, slow := s.o.SlowDisk[h.Name]; !slow || verb == "controller" {
		return s.supervisor.Start(ctx, p)
	}
	ours, its, err := slowPair()
	if err != nil {
		return nil, err
	}
	p.Args = append(slices.Clone(s.o.SlowExec), p.Args...)
	p.Files = []*os.File{its}
	c, err := s.supervisor.Start(ctx, p)
	its.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	disk, err := AcceptSlowDisk(ours)
	if err != nil {
		return c, fmt.Errorf("%w; %s:\n%s", err, p.Log, logTail(p.Log))
	}
	disk.host = h.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slowed {
		disk.Set(s.o.SlowDisk[h.Name])
	}
	s.disks = append(s.disks, disk)
	s.serving.Go(disk.Run)
	return c, nil
}

// mark sets the owner's marks as soon as etcd takes them.
func (s *story) mark(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("etcd did not take the owner's marks within %v", startLimit))
	defer cancel()
	for {
		err := s.o.Mark(ctx, s.fleet)
		if err == nil {
			return nil
		}
		select {
		case c := <-s.supervisor.Died():
			return c.Exit()
		case <-ctx.Done():
			if ctx.Err() == context.Canceled {
				return ctx.Err()
			}
			return fmt.Errorf("demo: %w: %w; the end of %s:\n%s", context.Cause(ctx), err,
				s.fleet.Hosts[0].Path("member.log"), logTail(s.fleet.Hosts[0].Path("member.log")))
		case <-time.After(poll):
		}
	}
}

// follow tells each change of the decision until the one that ends the demo.
func (s *story) follow(ctx context.Context) error {
	ask := newDecisions(s.fleet)
	defer ask.close()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	patience := time.Now().Add(30*time.Second + 6*s.o.window())
	nothing := len(s.o.Slow)+len(s.o.SlowDisk) == 0
	slowed := s.o.Until == UntilSteady // nobody waits for "all fit" then
	var h held
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-s.supervisor.Died():
			if err := s.lost(ctx, c); err != nil {
				return err
			}
			continue
		case <-tick.C:
		}
		d, err := ask.latest(ctx)
		if s.trouble = err; err != nil {
			s.tell.status("waiting for the controller's first round")
			continue
		}
		lasted := h.see(d, time.Now())
		s.show(d)
		if err := s.watch(ctx); err != nil {
			return err
		}
		switch {
		case s.ended != nil && s.o.Until == UntilSwap:
			return nil
		case !slowed && (allFit(d) || time.Now().After(patience)):
			slowed = true
			s.fitNow(d)
			if err := s.write(ctx); err != nil {
				return err
			}
			s.slowDown()
			h = held{} // what held before does not count
		case s.ends(d, slowed || nothing) && lasted >= s.o.window():
			return nil
		}
	}
}

// ends reports whether a decision is what the demo waits for.
func (s *story) ends(d membership.Decision, slowed bool) bool {
	switch s.o.Until {
	case UntilDecision:
		return slowed && counts(d)
	case UntilSteady:
		return d.Kind == membership.Steady
	}
	return false
}

// show tells what changed: verdicts first, then the decision.
func (s *story) show(d membership.Decision) {
	if s.told == nil {
		s.told = map[string]fitness.Status{}
	}
	var changed []string
	for _, v := range d.Verdicts {
		if was, ok := s.told[v.Host]; ok && was != v.Status {
			changed = append(changed, fmt.Sprintf("%s is %s", v.Host, v))
		}
		s.told[v.Host] = v.Status
	}
	for _, c := range changed {
		s.tell.say("  %s", c)
	}
	if d.Key() != s.decision.Key() {
		s.tell.say("%s", line(d))
	}
	s.decision = d
	s.tell.status(progress(d))
}

// fitNow tells that the fleet is well, or what keeps it from being.
func (s *story) fitNow(d membership.Decision) {
	if allFit(d) {
		s.tell.say("all fit:")
	} else {
		s.tell.say("not every host has become fit; going on all the same:")
	}
	s.tell.block(table(s.fleet, d))
	if s.o.Hints != nil && s.o.Until == UntilStopped {
		s.tell.block(s.o.Hints(s.fleet))
	}
}

// slowDown makes the hosts slow that are to be.
func (s *story) slowDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowed = true
	for _, name := range slices.Sorted(maps.Keys(s.o.Slow)) {
		h, err := s.fleet.Host(name)
		if err != nil {
			continue // Validate has refused it
		}
		s.delays.Set(h.Mesh, s.o.Slow[name])
		s.tell.say("now %s is slow: %v more on each of its round trips, for the agents' pings and for etcd", name, s.o.Slow[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.o.SlowDisk)) {
		for _, d := range s.disks {
			if d.host == name {
				d.Set(s.o.SlowDisk[name])
			}
		}
		s.tell.say("now the disk of %s is slow: %v more on each fsync of its member and its agent", name, s.o.SlowDisk[name])
	}
}

// lost handles a process that ended by itself. A controller is started again,
// as systemd would. Anything else ends a run that waits for a decision, since
// it would be about that; with a person watching it is part of the show.
func (s *story) lost(ctx context.Context, c *Child) error {
	name, verb, _ := strings.Cut(c.Name, " ")
	if verb == "controller" && s.restarted < restarts {
		s.restarted++
		s.tell.say("the controller on %s ended and is started again (its log: %s)", name, c.Log)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		_, err := s.supervisor.Start(ctx, c.Process)
		return err
	}
	if verb == "member" {
		switch s.memberEnds[name]++; {
		case host.Fenced(s.fleet.dataOf(name)) != nil:
			// It lost its vote, and etcd ends by itself then.
			s.tell.say("the member on %s ended; it is fenced, and nothing starts it again", name)
		case s.memberEnds[name] <= tries:
			s.tell.say("the member on %s ended and is started again (its log: %s)", name, c.Log)
		case s.o.Until != UntilStopped:
			return c.Exit()
		}
		return nil
	}
	if s.o.Until != UntilStopped || verb == "controller" {
		return c.Exit()
	}
	s.tell.say("%v", c.Exit())
	s.tell.say("to start it again: %s", strings.Join(c.Args, " "))
	return nil
}

// last is the last decision in one line, and why there is none after it.
func (s *story) last() string {
	said := "none"
	if !s.decision.At.IsZero() {
		said = line(s.decision)
	}
	if s.trouble != nil {
		said += fmt.Sprintf(" (%v)", s.trouble)
	}
	return said
}

// closeDisks ends the slow disks; their processes have ended before.
func (s *story) closeDisks() error {
	var errs []error
	for _, d := range s.disks { // no unit starts anything any more
		errs = append(errs, d.Close())
	}
	return errors.Join(append(errs, s.serving.Wait())...)
}
