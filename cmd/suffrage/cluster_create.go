package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"suffrage/membership/founding"
)

func newClusterCreateCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "create",
		Short: "Make the first cluster: this host's member of it",
		Long: `Makes the datastore of this host's member of a NEW, empty cluster of the hosts
in member.initial_cluster, and starts nothing. Give it once on each of them: first
on the one that comes first by name, which draws the cluster's ID; then start
suffrage-member on all.

It asks every host of the roster what it has (its agent has to run), and dials
their etcd ports. It is refused where this host, or any other, has a datastore, a
fence, a role or a record of any other cluster, or where etcd answers. A host that
does not answer is named in the text that has to be typed. Datastores that were
moved aside stand in nobody's way.

Refused, it changes nothing. Interrupted, it goes on with the same cluster when
it is given again; until then no member starts on this host.

Exit codes: 0 made; 1 refused or not made, with the reason; 2 wrong settings, or
nobody there to confirm.`,
		Example: `  suffrage cluster create
  suffrage cluster create --confirm 'create h1,h2,h3'`,
		Args: cobra.NoArgs,
		RunE: createCluster,
	}
	confirmFlag(c)
	return c
}

func createCluster(c *cobra.Command, _ []string) error {
	f, m, agents, err := openFounder(c)
	if err != nil {
		return err
	}
	defer agents.Close()
	switch self := m.InitialCluster[f.Host]; {
	case self == "":
		return usage(fmt.Errorf("%s: member.initial_cluster does not name %s: it holds the names and peer URLs of the first members; other hosts join later", c.Flag("config").Value, f.Host))
	case self != m.AdvertisePeer:
		return usage(fmt.Errorf("%s: member.initial_cluster gives %s the peer URL %s, member.advertise_peer is %s: they must be equal", c.Flag("config").Value, f.Host, self, m.AdvertisePeer))
	}
	stop := noteSlow(c, "still asking the other hosts; one that does not answer is waited for")
	defer stop()
	p, err := f.PlanCreate(c.Context(), m.InitialCluster)
	if err != nil {
		return err
	}
	stop()
	if len(p.Refusals) > 0 {
		return refusedFounding(c, p)
	}
	w := c.ErrOrStderr()
	if p.GoesOn {
		fmt.Fprintf(w, "cluster %s was begun to be created here; this goes on with it\n", p.Cluster)
	}
	fmt.Fprintf(w, "This makes the datastore of %s in %s, as a member of the new cluster %s of\n", f.Host, f.Datastore, p.Cluster)
	peerTable(w, p.Members)
	printSilent(c, p, "If one of them has a cluster, there will be two.")
	if err := confirmText(c, p.Confirm); err != nil {
		return err
	}
	defer noteSlow(c, "looking at all hosts once more, and making the datastore")()
	p, err = f.Create(c.Context(), p)
	if err != nil {
		return foundingFailed(c, p, err)
	}
	if wantsJSON(c) {
		return printJSON(c.OutOrStdout(), p)
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "created: member %s of cluster %s on %s\n", p.Member, p.Cluster, f.Host)
	if len(p.Missing) > 0 {
		fmt.Fprintf(out, "next: suffrage cluster create on %s; when all have it, start suffrage-member on all of them\n", strings.Join(p.Missing, ", "))
	} else {
		fmt.Fprintf(out, "next: start suffrage-member on %s\n", strings.Join(slices.Sorted(maps.Keys(p.Members)), ", "))
	}
	return nil
}

// printSilent names the hosts that did not answer.
func printSilent(c *cobra.Command, p founding.Plan, why string) {
	if len(p.Silent) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "\n%s\n", wrap(fmt.Sprintf("NOT ANSWERING: %s. What is there is not known: neither the agent nor etcd's ports answer. %s", strings.Join(p.Silent, ", "), why), ""))
	}
}

// foundingFailed says how far it came.
func foundingFailed(c *cobra.Command, p founding.Plan, err error) error {
	if len(p.Refusals) > 0 {
		return refusedFounding(c, p)
	}
	return fmt.Errorf("%w; suffrage cluster %s, given again as before, goes on or says what is in the way", err, p.By)
}
