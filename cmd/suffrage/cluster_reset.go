package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership/founding"
	"suffrage/snapshots"
)

func newClusterResetCmd() *cobra.Command {
	var o founding.ResetOptions
	c := &cobra.Command{
		Use:   "reset --from FILE|latest|own",
		Short: "Make a new cluster of this host alone, in place of one that is lost",
		Long: `For a cluster that lost its quorum for good, or whose datastore is damaged. It
makes a NEW cluster, with a new ID, of this host alone, and starts nothing. What
was written after the source was saved is lost.

--from  FILE    a snapshot (suffrage snapshot list)
        latest  the newest in this host's snapshot directory
        own     this host's own datastore, copied and verified first; a member
                that was killed may lack its last writes there, so prefer
                suffrage snapshot save while it still runs

The revision is raised, so that clients with a cache read everything again.
A datastore that is here is in the way; --aside (and --from own) moves it, and
keeps it. Nothing is deleted.

It asks every host of the roster. It is refused where any of them runs etcd: a
new cluster would be a second one. A host that does not answer is named, and its
etcd has to be confirmed dead by typing the exact text. Members of clusters that
were seen do not start any more where this host can be asked.

Refused, it changes nothing. Interrupted, it goes on when it is given again; until
then no member starts on this host. docs/recovery.md has the whole way back.

Exit codes: 0 made; 1 refused or not made, with the reason; 2 wrong arguments or
settings, or nobody there to confirm.`,
		Example: `  suffrage cluster reset --from latest
  suffrage cluster reset --from latest --aside
  suffrage cluster reset --from own --confirm 'reset to h3; etcd is dead on h1,h2'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return resetCluster(c, o) },
	}
	p := c.Flags()
	p.StringVar(&o.From, "from", "", "a snapshot's file, latest, or own")
	p.BoolVar(&o.Aside, "aside", false, "move a datastore that is here aside, and keep it")
	p.Int64Var(&o.Bump, "bump-revision", snapshots.DefaultBump, "how far to raise the revision: more than was written since the snapshot")
	confirmFlag(c)
	return c
}

func resetCluster(c *cobra.Command, o founding.ResetOptions) error {
	if o.From == "" {
		return usage(errors.New("say what the new cluster begins with: --from FILE, latest or own; suffrage snapshot list names the files"))
	}
	if o.Bump < 1 {
		return usage(fmt.Errorf("--bump-revision %d: at least 1; without it clients with a cache go wrong and do not notice", o.Bump))
	}
	f, _, agents, err := openFounder(c)
	if err != nil {
		return err
	}
	defer agents.Close()
	stop := noteSlow(c, "still asking the other hosts, and reading the snapshot; a host that does not answer is waited for")
	defer stop()
	p, err := f.PlanReset(c.Context(), o)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	stop()
	if len(p.Refusals) > 0 {
		return refusedFounding(c, p)
	}
	showReset(c, f, p)
	if err := confirmText(c, p.Confirm); err != nil {
		return err
	}
	defer noteSlow(c, "looking at all hosts once more, and reading the snapshot to its end")()
	began := time.Now()
	p, err = f.Reset(c.Context(), p, o, func(step string) {
		fmt.Fprintf(c.ErrOrStderr(), "%5.1fs %s\n", time.Since(began).Seconds(), step)
	})
	if err != nil {
		return foundingFailed(c, p, err)
	}
	if wantsJSON(c) {
		return printJSON(c.OutOrStdout(), p)
	}
	printReset(c, p)
	return nil
}

func showReset(c *cobra.Command, f founding.Founder, p founding.Plan) {
	w := c.ErrOrStderr()
	if p.GoesOn {
		fmt.Fprintf(w, "cluster %s was begun to be made here; this goes on with it\n", p.Cluster)
	}
	fmt.Fprintf(w, "This makes the new cluster %s of %s alone, in %s,\n", p.Cluster, f.Host, f.Datastore)
	switch {
	case p.Snapshot != nil:
		fmt.Fprintf(w, "from %s\n(revision %d, %d keys, %s).\n", p.From, p.Snapshot.Revision, p.Snapshot.Keys, savedAt(p.From))
	case p.From == founding.Own:
		fmt.Fprintf(w, "from the datastore that is there now: a copy of it is saved in %s first.\n", f.Snapshots)
	default:
		fmt.Fprintf(w, "from %s; its datastore is in place already.\n", p.From)
	}
	fmt.Fprintln(w, "Everything written after that is lost.")
	if p.Aside {
		fmt.Fprintf(w, "The datastore in %s is moved aside, and kept.\n", f.Datastore)
	}
	if len(p.Stopped) > 0 {
		fmt.Fprintf(w, "%s\n", wrap(fmt.Sprintf("Stopped, with a datastore: %s. It does not start any more while this host's agent answers; move it aside there, and keep it.", strings.Join(p.Stopped, ", ")), ""))
	}
	printSilent(c, p, "If etcd still runs there, or ever starts again, there are two clusters, each with its own truth.")
}

// savedAt is the age of a snapshot by its name.
func savedAt(path string) string {
	n, err := snapshots.ParseName(path[strings.LastIndexByte(path, '/')+1:])
	if err != nil {
		return "of unknown age"
	}
	return "saved " + age(time.Since(n.Time)) + " ago"
}

func printReset(c *cobra.Command, p founding.Plan) {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "made: member %s of the new cluster %s, %s alone\n", p.Member, p.Cluster, p.Host)
	if p.Revision > 0 {
		fmt.Fprintf(w, "revision %d (the source's %d, raised), %d keys\n", p.Revision, p.Snapshot.Revision, p.Snapshot.Keys)
	}
	if p.AsideAs != "" {
		fmt.Fprintf(w, "moved aside: %s\n", p.AsideAs)
	}
	steps := []string{
		"have it start now and at every boot: systemctl enable --now suffrage-member",
		"suffrage cluster accept " + p.Cluster + ": until then the controller refuses everything (cluster-replaced)",
		"on every other host: move the old datastore aside, and have a boot start its member again: systemctl enable suffrage-member",
		"then, in mode active, give them votes: suffrage target 3",
	}
	fmt.Fprintln(w, "\nnext:")
	for i, s := range steps {
		fmt.Fprintf(w, "  %d. %s\n", i+1, strings.TrimPrefix(wrap(s, "     "), "     "))
	}
}
