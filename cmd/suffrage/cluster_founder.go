package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/agent"
	"suffrage/config"
	"suffrage/identity"
	"suffrage/member"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/membership/founding"
	"suffrage/membership/host"
)

// standing tells what this host has of any cluster.
func (s Settings) standing() (host.Standing, error) {
	return host.StandingOf(s.Data, s.Member.DataDir, founding.Identity)
}

// openFounder makes what can make a cluster on this host. Close the client when done.
func openFounder(c *cobra.Command) (founding.Founder, member.Config, *agent.Client, error) {
	var none founding.Founder
	s, key, roster, err := loadHost(c)
	if err != nil {
		return none, member.Config{}, nil, err
	}
	m, err := s.member()
	if err != nil {
		return none, m, nil, usage(err)
	}
	path := c.Flag("config").Value
	if err := config.Under("member", m.Validate()); err != nil {
		return none, m, nil, usage(fmt.Errorf("%s: %w", path, err))
	}
	if m.AdvertisePeer == "" {
		m.AdvertisePeer = m.ListenPeer
	}
	if m.Name != s.Host {
		return none, m, nil, usage(fmt.Errorf("%s: member.name is %q: let it be the host's, %q, so that hosts and members can be told from each other", path, m.Name, s.Host))
	}
	for _, name := range slices.Sorted(maps.Keys(m.InitialCluster)) {
		if err := (&fleet{Settings: s, roster: roster}).known(name); err != nil {
			return none, m, nil, fmt.Errorf("%s: member.initial_cluster: %w", path, err)
		}
	}
	agents := agent.NewClient(key, func() *identity.Roster { return roster })
	asked := etcd.DefaultConfig()
	asked.CA, asked.Cert, asked.Key, asked.Timeout = m.CA, m.Cert, m.Key, s.Etcd.Timeout
	return founding.Founder{
		Host: s.Host, Data: s.Data, Datastore: m.DataDir, Snapshots: s.Snapshots.Dir,
		Places: s.places(m, roster),
		Look:   founding.Look{Standing: agents.Standing, Etcd: asked, Self: m.AdvertisePeer},
	}, m, agents, nil
}

// places are where the etcd of every other host would be: where the settings say
// so, else at its mesh address and the usual ports.
func (s Settings) places(m member.Config, roster *identity.Roster) []founding.Place {
	scheme, _, _ := strings.Cut(m.ListenPeer, ":")
	var out []founding.Place
	for _, h := range roster.Hosts() {
		if h.Name == s.Host {
			continue
		}
		at := func(port uint16) string {
			u := url.URL{Scheme: scheme, Host: netip.AddrPortFrom(h.Address, port).String()}
			return u.String()
		}
		p := founding.Place{Host: h.Name, Peer: at(2380), Client: at(2379)}
		if u := m.InitialCluster[h.Name]; u != "" {
			p.Peer = u
		}
		for _, e := range s.Etcd.Endpoints {
			if u, err := url.Parse(e); err == nil && u.Hostname() == h.Address.String() {
				p.Client = e
			}
		}
		out = append(out, p)
	}
	return out
}

// slowFrom is from when on a command says what it waits for.
const slowFrom = 2 * time.Second

// noteSlow says then what is waited for.
func noteSlow(c *cobra.Command, what string) (stop func() bool) {
	return time.AfterFunc(slowFrom, func() { fmt.Fprintln(c.ErrOrStderr(), what) }).Stop
}

// refusedFounding prints a plan that was refused, and is the command's error.
func refusedFounding(c *cobra.Command, p founding.Plan) error {
	if wantsJSON(c) {
		if err := printJSON(c.OutOrStdout(), p); err != nil {
			return err
		}
	}
	var text strings.Builder
	for _, r := range p.Refusals {
		fmt.Fprintf(&text, "\n%s\n%s", wrap(r.String(), "  "), wrap("→ "+r.Next, "    "))
	}
	return fmt.Errorf("nothing was changed: cluster %s is refused:%s", p.By, text.String())
}

func confirmFlag(c *cobra.Command) {
	c.Flags().String("confirm", "", "the exact text that is asked for; it names every host that does not answer")
}

// replaced refuses the start of a member whose cluster another host's reset put
// a new one in place of. Hosts that do not answer within two seconds say nothing.
func (s Settings) replaced(ctx context.Context, c *cobra.Command, dataDir string) error {
	id, err := member.IdentityOf(dataDir)
	if err != nil {
		return nil // etcd has its own words for such a datastore
	}
	_, key, roster, err := loadHost(c)
	if err != nil {
		return nil // a member needs neither key nor roster
	}
	agents := agent.NewClient(key, func() *identity.Roster { return roster })
	defer agents.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	found := make(chan error, roster.Len())
	asked := 0
	for _, h := range roster.Hosts() {
		if h.Name == s.Host {
			continue
		}
		asked++
		go func() {
			st, err := agents.Standing(ctx, h.Name)
			if r := st.Record; err == nil && r != nil && slices.Contains(r.Replaces, id.Cluster) {
				found <- fmt.Errorf("%s: this host's member is of cluster %s, which was replaced by cluster %s (cluster %s on %s at %s): its datastore must not start again; move %s aside, and let this host join the new cluster",
					membership.ClusterReplaced, id.Cluster, r.ID, r.By, h.Name, r.At.UTC().Format(time.RFC3339), dataDir)
				return
			}
			found <- nil
		}()
	}
	var errs []error
	for range asked {
		errs = append(errs, <-found)
	}
	return errors.Join(errs...)
}

// peerTable lists members and their URLs.
func peerTable(w io.Writer, members map[string]string) {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		rows = append(rows, []string{"  " + name, members[name]})
	}
	table(w, rows)
}
