package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/agent"
	"suffrage/config"
	"suffrage/identity"
	"suffrage/membership"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
)

// fleet is what a command needs to look at the whole fleet from this host.
type fleet struct {
	Settings
	key    *identity.Key
	roster *identity.Roster
	client *clientv3.Client
	agents *agent.Client
	shared
}

// openFleet reads the settings of this host and makes the clients. Nothing is
// connected yet; close it when done.
func openFleet(c *cobra.Command) (*fleet, error) {
	s, key, roster, err := loadHost(c)
	if err != nil {
		return nil, err
	}
	if err := config.Under("etcd", s.Etcd.Validate()); err != nil {
		return nil, usage(fmt.Errorf("%s: %w", c.Flag("config").Value, err))
	}
	client, err := s.Etcd.Client()
	if err != nil {
		return nil, usage(fmt.Errorf("%w; suffrage config check looks at all of it", err))
	}
	there, err := s.open(client)
	if err != nil {
		return nil, usage(errors.Join(err, client.Close()))
	}
	agents := agent.NewClient(key, func() *identity.Roster { return roster })
	return &fleet{Settings: s, key: key, roster: roster, client: client, agents: agents, shared: there}, nil
}

func (f *fleet) close() error {
	f.agents.Close()
	f.shared.close()
	return f.client.Close()
}

// callTimeout bounds one read or write of marks and records. A write forwarded
// to a leader that froze waits for etcd's own request timeout (5 s + 2·E);
// longer than that nothing is to be expected.
func (f *fleet) callTimeout() time.Duration {
	return 5*time.Second + 2*f.Member.ElectionTimeout.Std()
}

// asking bounds one read or write for a command; where it takes long it says so.
func (f *fleet) asking(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(c.Context(), f.callTimeout())
	stop := noteSlow(c, fmt.Sprintf("still asking etcd; after %v it is given up", f.callTimeout()))
	return ctx, func() { stop(); cancel() }
}

func (f *fleet) book(l *etcd.Leadership) book {
	return book{kv: f.client, nodes: f.nodes, k3s: f.Flavour == k3s, leader: l, timeout: f.callTimeout()}
}

// gatherer looks at the fleet; with l it may also write down what it sees.
func (f *fleet) gatherer(l *etcd.Leadership) *control.Gatherer {
	return &control.Gatherer{
		Agents: f.agents,
		Cluster: cluster{etcd.NewObserver(f.Etcd, etcd.Options{
			HostOf: hostOf(f.roster),
			// A command that only looks must not even append to etcd's log.
			ReadOnly: l == nil,
		})},
		Book:        f.book(l),
		Hosts:       f.hosts,
		Policy:      f.policy(),
		HostTimeout: f.Controller.HostTimeout.Std(),
	}
}

func (f *fleet) hosts() []control.Roster {
	var out []control.Roster
	for _, h := range f.roster.Hosts() {
		out = append(out, control.Roster{Name: h.Name, Address: h.Address.String()})
	}
	return out
}

// hostOf names the host that has a mesh address.
func hostOf(roster *identity.Roster) func(address string) string {
	return func(address string) string {
		a, err := netip.ParseAddr(address)
		if err != nil {
			return "" // a name; members are found by address
		}
		h, _ := roster.ByAddress(a)
		return h.Name
	}
}

// known refuses a host that is not in the roster, before anything is changed.
func (f *fleet) known(host string) error {
	if _, ok := f.roster.ByName(host); ok {
		return nil
	}
	names := ""
	for i, h := range f.roster.Hosts() {
		if i > 0 {
			names += ", "
		}
		names += h.Name
	}
	return usage(fmt.Errorf("host %q is not in %s; it has: %s", host, f.rosterFile(), names))
}

// cluster makes an Observer fill Views.
type cluster struct{ o *etcd.Observer }

func (c cluster) Observe(ctx context.Context) (v membership.View) {
	c.o.Observe(ctx).Fill(&v)
	return v
}

// look is one look at the fleet and what is decided from it.
type look struct {
	in membership.Inputs
	d  membership.Decision
	// leader is the controller that leads; leaderNote says why it is not known.
	leader     *etcd.Leadership
	leaderNote string
}

func (f *fleet) look(ctx context.Context) (look, error) { return f.lookBy(ctx, f.gatherer(nil)) }

// lookBy looks with a gatherer that may have looked before.
func (f *fleet) lookBy(ctx context.Context, g *control.Gatherer) (look, error) {
	in, err := g.Gather(ctx)
	if err != nil {
		return look{}, err
	}
	if in.View.Error == "" {
		// There is a quorum, and yet the member that the client picks may be one that
		// gives up after its own timeout: time enough to try the next.
		reads, cancel := context.WithTimeout(ctx, 2*f.callTimeout())
		defer cancel()
		open, record, err := f.lease.Open(reads)
		if err != nil {
			return look{}, f.unreachable(err)
		}
		in.Open, in.Term = open, uint64(record.Term)
	}
	l := look{in: in, d: membership.Decide(in)}
	patience := f.callTimeout()
	if in.View.Error != "" {
		// Where it is only the API server that is away, etcd answers at once.
		l.leaderNote, patience = "not known without etcd", f.Etcd.Timeout.Std()
		if len(in.View.Members) == 0 {
			return l, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch leader, err := etcd.Leader(ctx, f.client); {
	case err == nil:
		l.leader, l.leaderNote = &leader, ""
	case errors.Is(err, etcd.ErrNoLeader):
		l.leaderNote = "none leads"
	case l.leaderNote == "":
		l.leaderNote = err.Error()
	}
	return l, nil
}

// looking opens the fleet, looks once and hands both on.
func looking(c *cobra.Command, use func(*fleet, look) error) error {
	f, err := openFleet(c)
	if err != nil {
		return err
	}
	defer f.close()
	l, err := f.looked(c)
	if err != nil {
		return err
	}
	return use(f, l)
}

// looked is one look for a command; where it takes long it says so.
func (f *fleet) looked(c *cobra.Command) (look, error) {
	defer noteSlow(c, fmt.Sprintf("still looking at etcd and %d agents; one that does not answer is waited for", f.roster.Len()))()
	return f.look(c.Context())
}
