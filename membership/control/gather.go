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

// Entries are what the owner said, and what operations left.
type Entries struct {
	Marks map[string]membership.Mark // by host
	// Nodes are those of Kubernetes, by host; none where it is not asked.
	Nodes map[string]membership.Node
	// Say writes what the owner said while it runs over what the settings say,
	// nil where that is nothing.
	Say func(*membership.Policy)
	// Foreign are signs of other controllers of membership.
	Foreign []membership.Foreign
	// Removals are asked for now; Operations ended in the last days.
	Removals   []membership.Removal
	Operations []membership.Operation
	// Request is what the owner asks for, nil for none. It was read before Say: one
	// for a number of voters is written together with what Say fills in.
	Request *membership.Request
	// Controllers are the hosts whose controllers lead or wait to, sorted.
	Controllers []string
}

// Book is what is written down between rounds and between leaders.
type Book interface {
	Read(ctx context.Context) (Entries, error)
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
// round pulls only what is new. Not safe for concurrent use, but for Series.
type Gatherer struct {
	Agents  Agents
	Cluster Cluster
	Book    Book
	Hosts   func() []Roster
	Policy  membership.Policy
	// HostTimeout bounds the pull of one host; one that hangs delays no other.
	HostTimeout time.Duration

	// mu guards what Series reads, while a round writes it: told and the series in it.
	mu       sync.Mutex
	told     map[string]*told
	voters   map[string]string // host → member ID, of the last view with a quorum
	seen     map[string]since  // host name → how long its agent has (not) answered
	previous *membership.Previous
	// remembers: previous is this Gatherer's own. known: the book's was read, and
	// may be written over. unwritten: the book does not have these ages yet.
	remembers, known, unwritten bool
	unread                      error // of the Book, in the newest look
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
	if g.seen == nil {
		g.seen = map[string]since{}
		g.mu.Lock()
		g.told = map[string]*told{}
		g.mu.Unlock()
	}
	hosts := g.Hosts()
	results := make([]pulled, len(hosts))
	var view membership.View
	var entries Entries
	var entriesErr error
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
	wg.Go(func() { entries, entriesErr = g.Book.Read(ctx) })
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return membership.Inputs{}, err
	}
	g.unread = entriesErr
	now := time.Now()
	view.At = now.UTC()
	if view.Error == "" {
		if entriesErr != nil {
			view.Error = "the owner's marks could not be read: " + entriesErr.Error()
		} else if err := g.Book.Membership(ctx, &view); err != nil {
			view.Error = "the recorded membership could not be read: " + err.Error()
		}
		g.forget(view)
	}
	if (!g.remembers || !g.known) && view.Error == "" {
		// One that only looks, for weeks where a page is open, asks again each time:
		// another goes on deciding. A missing age is no reason to decide nothing.
		if p, err := g.Book.Previous(ctx); err == nil {
			g.known = true
			if p != nil {
				g.previous = p
			}
		}
	}
	for _, t := range g.told {
		t.fresh = false
	}
	for _, r := range results {
		g.takeIn(r)
		h := g.host(r, entries.Marks[r.host.Name], now)
		if node, there := entries.Nodes[r.host.Name]; there {
			h.Node = &node
		}
		view.Hosts = append(view.Hosts, h)
	}
	slices.SortFunc(view.Hosts, func(a, b membership.Host) int { return strings.Compare(a.Name, b.Name) })
	view.Removals, view.Foreign = entries.Removals, entries.Foreign
	in := membership.Inputs{Version: membership.InputsVersion, Now: now.UTC(), Policy: g.policy(view), View: view,
		Operations: entries.Operations, Controllers: entries.Controllers, Previous: g.previous}
	if entries.Say != nil {
		entries.Say(&in.Policy)
	}
	// In dry-run nothing would ever take it up; and what could not be seen for a
	// moment is no reason to refuse it.
	if in.Policy.Mode == membership.Active && view.Error == "" {
		in.Request = entries.Request
	}
	in.Readings = g.readings(in, hosts)
	return in, nil
}

// Remember gives the next Inputs the ages of this decision, and the book those
// of one that changed. What could not be written is written in a later round:
// while etcd has no leader nothing can, and the decision that tells of it may
// stand for days. Nor are those written over that could not be read yet: they are
// older, and all that tells of a voter that has been silent for long.
func (g *Gatherer) Remember(ctx context.Context, d membership.Decision) error {
	g.unwritten = g.unwritten || g.previous == nil || g.previous.Key != d.Key()
	g.previous, g.remembers = d.Remember(), true
	if !g.unwritten || !g.known {
		return nil
	}
	if err := g.Book.Remember(ctx, *g.previous); err != nil {
		return err
	}
	g.unwritten = false
	return nil
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
