package control

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Agents pulls one host's report: samples with a sequence number above after.
// An error must name the host's trouble in words for its owner.
type Agents interface {
	Pull(ctx context.Context, host string, after uint64) (fitness.Report, error)
}

// Cluster observes etcd: everything of a View but the hosts and what is
// recorded. What it could not learn it says in the View, not in an error.
type Cluster interface {
	Observe(ctx context.Context) membership.View
}

// Book is what is written down between rounds and between leaders: the owner's
// marks and the membership as it was last seen.
type Book interface {
	// Marks are the owner's, by host name.
	Marks(ctx context.Context) (map[string]membership.Mark, error)
	// Membership fills the recorded cluster ID and the times of the last change
	// into the view, and writes down what is new if it may.
	Membership(ctx context.Context, v *membership.View) error
	// Previous is the decision that was last written down, nil when none was.
	Previous(ctx context.Context) (*membership.Previous, error)
	// Remember writes a changed decision's ages down, if it may.
	Remember(ctx context.Context, p membership.Previous) error
}

// Roster is one host as configured.
type Roster struct{ Name, Address string }

// Gatherer makes Inputs. It keeps what the agents told before, so that each
// round pulls only what is new. Not safe for concurrent use.
type Gatherer struct {
	Agents  Agents
	Cluster Cluster
	Book    Book
	Hosts   func() []Roster
	Policy  membership.Policy
	// HostTimeout bounds the pull of one host; one that hangs delays no other.
	HostTimeout time.Duration

	told     map[string]*told
	voters   []string
	seen     map[string]since // host name → how long its agent has (not) answered
	previous *membership.Previous
}

// told is what one agent has told so far, with times by our own clock.
type told struct {
	instance string
	last     uint64
	report   fitness.Report // of the last pull, without series
	received time.Time
	fresh    bool // pulled in this round
	series   map[key]*fitness.Series
}

type key struct {
	signal fitness.Signal
	peer   string
}

type since struct {
	ok bool
	at time.Time
}

// pulled is the outcome of one pull.
type pulled struct {
	host     Roster
	report   fitness.Report
	err      error
	received time.Time
}

// Gather takes one consistent look: the agents and etcd side by side, each host
// with its own timeout.
func (g *Gatherer) Gather(ctx context.Context) (membership.Inputs, error) {
	if g.told == nil {
		g.told, g.seen = map[string]*told{}, map[string]since{}
	}
	hosts := g.Hosts()
	results := make([]pulled, len(hosts))
	var view membership.View
	var marks map[string]membership.Mark
	var marksErr error
	var wg sync.WaitGroup
	for i, h := range hosts {
		after := uint64(0)
		if t := g.told[h.Name]; t != nil {
			after = t.last
		}
		wg.Go(func() {
			pullCtx, cancel := context.WithTimeout(ctx, g.HostTimeout)
			defer cancel()
			r, err := g.Agents.Pull(pullCtx, h.Name, after)
			results[i] = pulled{h, r, err, time.Now()}
		})
	}
	wg.Go(func() { view = g.Cluster.Observe(ctx) })
	wg.Go(func() { marks, marksErr = g.Book.Marks(ctx) })
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return membership.Inputs{}, err
	}
	now := time.Now()
	view.At = now.UTC()
	if view.Error == "" {
		if marksErr != nil {
			view.Error = "the owner's marks could not be read: " + marksErr.Error()
		} else if err := g.Book.Membership(ctx, &view); err != nil {
			view.Error = "the recorded membership could not be read: " + err.Error()
		}
		g.forget(view)
	}
	if g.previous == nil && view.Error == "" {
		// A missing age is no reason to decide nothing: it begins anew.
		g.previous, _ = g.Book.Previous(ctx)
	}
	for _, t := range g.told {
		t.fresh = false
	}
	for _, r := range results {
		g.takeIn(r, view)
		view.Hosts = append(view.Hosts, g.host(r, marks[r.host.Name], now))
	}
	slices.SortFunc(view.Hosts, func(a, b membership.Host) int { return strings.Compare(a.Name, b.Name) })
	in := membership.Inputs{Version: membership.InputsVersion, Now: now.UTC(), Policy: g.policy(hosts, view), View: view, Previous: g.previous}
	in.Readings = g.readings(in, hosts)
	return in, nil
}

// Remember gives the next Inputs the ages of this decision, and the book those
// of one that changed.
func (g *Gatherer) Remember(ctx context.Context, d membership.Decision) error {
	changed := g.previous == nil || g.previous.Key != d.Key()
	g.previous = d.Remember()
	if !changed {
		return nil
	}
	return g.Book.Remember(ctx, *g.previous)
}

// forget drops all series when the voters are not those of the round before:
// what was measured under another membership does not count.
func (g *Gatherer) forget(v membership.View) {
	var voters []string
	for _, m := range v.Voters() {
		voters = append(voters, m.ID+m.Host)
	}
	slices.Sort(voters)
	if g.voters != nil && !slices.Equal(voters, g.voters) {
		clear(g.told)
	}
	g.voters = voters
}

// takeIn adds what a report brought to what its agent told before. Of round
// trips, those without a voter at either end are left out: nothing asks for
// them, and there are as many as hosts squared.
func (g *Gatherer) takeIn(p pulled, v membership.View) {
	if p.err != nil {
		return
	}
	r := p.report
	t := g.told[p.host.Name]
	if t == nil || t.instance != r.Instance {
		t = &told{instance: r.Instance, series: map[key]*fitness.Series{}}
		g.told[p.host.Name] = t
	}
	votes := map[string]bool{}
	for _, m := range v.Voters() {
		votes[m.Host] = true
	}
	shift := p.received.UnixMicro() - r.Now
	for _, s := range r.Series {
		if s.Signal.OfPair() && !votes[p.host.Name] && !votes[s.Peer] {
			continue
		}
		k := key{s.Signal, s.Peer}
		kept := t.series[k]
		if kept == nil {
			kept = &fitness.Series{Signal: s.Signal, Peer: s.Peer}
			t.series[k] = kept
		}
		for _, m := range s.Samples {
			m.At += shift
			kept.Samples = append(kept.Samples, m)
		}
		kept.Samples = newest(kept.Samples, fitness.SeriesSize)
		kept.Bounds = kept.Bounds[:0]
		for _, b := range s.Bounds {
			b.At += shift
			kept.Bounds = append(kept.Bounds, b)
		}
		kept.Error = s.Error
	}
	if m := r.Facts.Member; m != nil {
		shifted := *m
		shifted.Started += shift
		r.Facts.Member = &shifted
	}
	r.Series = nil
	t.last, t.report, t.received, t.fresh = r.Last, r, p.received, true
}

// newest keeps the last n samples in place, so that the array does not grow.
func newest(s []fitness.Sample, n int) []fitness.Sample {
	if len(s) <= n {
		return s
	}
	copy(s, s[len(s)-n:])
	return s[:n]
}

func (g *Gatherer) host(p pulled, mark membership.Mark, now time.Time) membership.Host {
	h := membership.Host{Name: p.host.Name, Address: p.host.Address, Mark: mark, Reachable: p.err == nil}
	h.Since = g.sinceWhen(h.Name, h.Reachable, now)
	if p.err != nil {
		h.Error = p.err.Error()
	}
	if t := g.told[h.Name]; t != nil {
		h.Software, h.Facts = t.report.Software, t.report.Facts
	}
	return h
}

func (g *Gatherer) sinceWhen(host string, ok bool, now time.Time) time.Time {
	s, known := g.seen[host]
	if !known || s.ok != ok {
		s = since{ok, now.UTC()}
		g.seen[host] = s
	}
	return s.at
}

// policy takes the election timeout that the running members tell. Where they
// differ the shortest judges, since it is the first to call an election.
func (g *Gatherer) policy(hosts []Roster, v membership.View) membership.Policy {
	p := g.Policy
	told := fitness.Duration(0)
	for _, m := range v.Voters() {
		t := g.told[m.Host]
		if t == nil || t.report.Facts.Member == nil {
			continue
		}
		if e := t.report.Facts.Member.ElectionTimeout; e > 0 && (told == 0 || e < told) {
			told = e
		}
	}
	if told > 0 {
		p.Limits.ElectionTimeout = told
	}
	return p
}

// settle is how long after the start of a member its host's samples do not
// count: etcd replays its log, and is told nothing by its peers for the first
// elections.
func settle(l fitness.Limits) time.Duration { return 5 * l.ElectionTimeout.Std() }

// maxPeriod bounds what an agent may call its period: with one of hours, its
// samples would never grow old.
const maxPeriod = time.Minute

func (g *Gatherer) readings(in membership.Inputs, hosts []Roster) []fitness.Reading {
	from := map[string]time.Time{}
	for _, h := range hosts {
		from[h.Name] = in.View.MembershipSince
		if t := g.told[h.Name]; t != nil && t.report.Facts.Member != nil {
			if s := time.UnixMicro(t.report.Facts.Member.Started).Add(settle(in.Policy.Limits)); s.After(from[h.Name]) {
				from[h.Name] = s
			}
		}
	}
	var out []fitness.Reading
	for _, h := range hosts {
		t := g.told[h.Name]
		if t == nil {
			continue
		}
		for _, s := range t.series {
			c := fitness.Context{Host: h.Name, Now: t.received, Period: min(t.report.Period.Std(), maxPeriod), NotBefore: from[h.Name],
				Limit: in.Policy.Limits.For(s.Signal, t.report.Facts.MemoryTotal)}
			if p := from[s.Peer]; s.Peer != "" && p.After(c.NotBefore) {
				c.NotBefore = p
			}
			if s.Signal == fitness.Stability {
				// A restart is what stability counts; the samples around it are its own.
				c.NotBefore = in.View.MembershipSince
			}
			if !t.fresh {
				c.Now = in.Now // its samples grow old while it does not answer
			}
			out = append(out, fitness.Read(*s, c))
		}
	}
	slices.SortFunc(out, func(a, b fitness.Reading) int {
		if c := strings.Compare(a.Host, b.Host); c != 0 {
			return c
		}
		if c := strings.Compare(string(a.Signal), string(b.Signal)); c != 0 {
			return c
		}
		return strings.Compare(a.Peer, b.Peer)
	})
	return out
}
