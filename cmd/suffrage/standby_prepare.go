package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"suffrage/config"
	"suffrage/identity"
	"suffrage/membership/host/standby"
	"suffrage/membership/kube"
)

// StandbyDone is what `suffrage standby prepare -o json` and `remove` print.
type StandbyDone struct {
	Host string `json:"host"`
	// DryRun: it was not done, only said.
	DryRun bool     `json:"dry_run"`
	Did    []string `json:"did"`
	// Lacks are the checks that are not ok after it; of prepare only.
	Lacks []standby.Check `json:"lacks,omitempty"`
}

func newStandbyPrepareCmd() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "prepare",
		Short: "Lay down on this host what a standby needs",
		Long: `Does of what a standby needs all that can be done with what is here: the data
directory, the fence, the units of this program with their drop-ins, polkit's
leave for the agent, and has them read and started at boot. It starts nothing,
fetches nothing, and makes no key and no certificate: it says what is left to do
(suffrage standby check). A host that is a voter, or one of the first (in
member.initial_cluster), gets no fence.

Given again it does nothing where nothing changed. What was there before is kept
in /var/lib/suffrage-standby, which is root's, for suffrage standby remove.

Exit codes: 0 done, or nothing to do; 1 something could not be done, with the
reason; 2 the command line or the settings file is wrong.`,
		Example: "  suffrage standby prepare --dry-run\n  sudo suffrage standby prepare",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := standbyOf(c)
			if err != nil {
				return err
			}
			defer noteSlow(c, "still laying it down, and asking what is missing")()
			did, err := h.Prepare(c.Context(), dry)
			out := StandbyDone{Host: h.Entry.Name, DryRun: dry, Did: did}
			if err == nil && !dry {
				for _, k := range h.Check(c.Context()) {
					if k.State != standby.OK {
						out.Lacks = append(out.Lacks, k)
					}
				}
			}
			if err := printDone(c, out, err); err != nil {
				return err
			}
			if len(out.Lacks) > 0 && !wantsJSON(c) {
				fmt.Fprintln(c.OutOrStdout(), "\nleft to do:")
				for _, k := range out.Lacks {
					writeCheck(c.OutOrStdout(), k)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "say what it would do, and do nothing")
	return c
}

func newStandbyRemoveCmd() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "remove",
		Short: "Take away again what prepare laid down on this host",
		Long: `Puts this host back to what it was before the first suffrage standby prepare: its
agent and controller stopped, units and drop-ins gone or as they were, nothing
started at boot that was not before. Nothing is deleted: a datastore, and whatever
else came into the data directory, is moved to DATA.removed-TIME. A file that was
changed since is left, and named. K3s's server is not started at boot any more,
whatever it was before: without the fence it would join again.

Refused while this host has a member, by what runs here, by its role file and by
the member list of etcd (k3s: by its Node, where etcd's certificates are not
here); and where that list cannot be read, since then nobody knows.

Exit codes: 0 done, or nothing to do; 1 refused, or something could not be done,
with the reason; 2 the command line or the settings file is wrong.`,
		Example: "  sudo suffrage standby remove --dry-run\n  sudo suffrage standby remove",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := standbyOf(c)
			if err != nil {
				return err
			}
			s, err := loadSettings(c)
			if err != nil {
				return err
			}
			defer noteSlow(c, "still asking whether this host votes, and putting back what was there")()
			did, err := h.Remove(c.Context(), dry, s.votes)
			return printDone(c, StandbyDone{Host: h.Entry.Name, DryRun: dry, Did: did}, err)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "say what it would do, and do nothing")
	return c
}

// printDone says what was done, and gives the error that ended it.
func printDone(c *cobra.Command, out StandbyDone, err error) error {
	if out.Did == nil {
		out.Did = []string{}
	}
	w := c.OutOrStdout()
	switch {
	case wantsJSON(c):
		return errors.Join(err, printJSON(w, out))
	case err == nil && len(out.Did) == 0:
		fmt.Fprintln(w, "nothing to do")
	case out.DryRun && len(out.Did) > 0:
		fmt.Fprintln(w, "would:")
	}
	for _, d := range out.Did {
		fmt.Fprintln(w, d)
	}
	return err
}

// votesTime bounds the read of the member list.
const votesTime = 15 * time.Second

// votes tells what this host is in the cluster: voter, learner, or nothing.
func (s Settings) votes(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, votesTime)
	defer cancel()
	roster, err := identity.LoadRoster(s.rosterFile())
	if err != nil {
		return "", err
	}
	if len(s.Etcd.Endpoints) == 0 {
		return "", errors.New("etcd.endpoints are not set, so there is nobody to ask")
	}
	if err := config.Under("etcd", s.Etcd.Validate()); err != nil {
		return "", err
	}
	client, err := s.Etcd.Client()
	if err != nil && s.Flavour == k3s {
		return s.votesOnNode(ctx)
	}
	if err != nil {
		return "", err
	}
	defer client.Close()
	list, err := client.MemberList(ctx) // linearizable: a quorum has it
	if err != nil {
		return "", fmt.Errorf("read the member list of %v: %w", s.Etcd.Endpoints, err)
	}
	name := hostOf(roster)
	for _, m := range list.Members {
		mine := m.Name == s.Host
		for _, peer := range m.PeerURLs {
			u, err := url.Parse(peer)
			mine = mine || err == nil && name(u.Hostname()) == s.Host
		}
		switch {
		case mine && m.IsLearner:
			return "learner", nil
		case mine:
			return "voter", nil
		}
	}
	return "", nil
}

// votesOnNode is votes where K3s has given this host no certificates of etcd.
func (s Settings) votesOnNode(ctx context.Context) (string, error) {
	server, err := s.Kubernetes.Server()
	if err != nil {
		return "", fmt.Errorf("kubernetes: %w", err)
	}
	nodes, err := kube.New(server)
	if err != nil {
		return "", err
	}
	defer nodes.Close()
	member, err := nodes.Member(ctx, s.Host)
	if err != nil || member == "" {
		return "", err
	}
	return "member (" + member + ", by its Node)", nil
}
