package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
)

func newRemoveDeadCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "remove-dead HOST",
		Short: "Have the member of a dead host removed, for ever",
		Long: `For a voter whose host is gone for good: its member is removed, so that it no
longer counts for the quorum. Suffrage never does this by itself. It may leave
two voters, which nothing else may; suffrage target N gives other hosts a vote
afterwards.

It looks first: its etcd must not answer, and all other voters have to answer,
agree and have a leader. Where it would be refused it says why and asks for
nothing. Else it shows the member, who stays and how many more could be lost,
and wants "remove HOST MEMBER" typed exactly so, MEMBER being the ID that it
shows; --confirm gives the same text where nobody is at a terminal. Then it
hands the removal to the controller that leads and follows it to its end: a
snapshot, the fence if the agent of HOST still answers, the removal. Ctrl-C ends
only the following.

The record is printed on stdout, all else is on stderr. The mode has to be
active.

Exit codes: 0 it is removed; 1 it was refused, or ended otherwise, or is no
longer followed, with the reason; 2 wrong arguments or settings, a host that is
not in the roster, or the confirmation is missing or another text.`,
		Example: `  suffrage remove-dead h3
  suffrage remove-dead h3 --confirm "remove h3 8211f1d0f64f3269" --reason "its disk is gone"`,
		Args:              exactly("HOST"),
		ValidArgsFunction: completeHosts,
		RunE:              removeDead,
	}
	sayFlags(c)
	c.Flags().String("confirm", "", `the text that would be typed: "remove HOST MEMBER"`)
	return c
}

func removeDead(c *cobra.Command, args []string) error {
	s, err := saidBy(c)
	if err != nil {
		return err
	}
	f, err := openFleet(c)
	if err != nil {
		return err
	}
	defer f.close()
	host := args[0]
	if err := f.known(host); err != nil {
		return err
	}
	l, err := f.looked(c)
	if err != nil {
		return err
	}
	if l.in.View.Error != "" {
		return fmt.Errorf("nothing was asked for: %s; without a quorum no member can be removed: docs/refusals.md#membership-unknown", l.in.View.Error)
	}
	i := slices.IndexFunc(l.in.View.Members, func(m membership.Member) bool { return m.Host == host })
	if i < 0 {
		return fmt.Errorf("nothing was asked for: no member of %s is listed, so there is none to remove", host)
	}
	q := membership.Request{Dead: host, Member: l.in.View.Members[i].ID, By: s.By, At: time.Now().UTC(), Reason: s.Reason}
	if err := q.Validate(); err != nil {
		return usage(fmt.Errorf("suffrage remove-dead: %w", err))
	}
	if err := requestDecided(c, l.in, q); err != nil {
		return err
	}
	showDead(c.ErrOrStderr(), l.in, q)
	if f.Flavour == k3s {
		fmt.Fprintf(c.ErrOrStderr(), "K3s on %s joins again by itself if it ever starts there without a fence: keep the host off (docs/k3s.md).\n", host)
	}
	if err := confirmText(c, fmt.Sprintf("remove %s %s", host, q.Member)); err != nil {
		return err
	}
	op, err := f.ask(c, q, l.in.Operations)
	if err != nil {
		return err
	}
	if err := printAsked(c, op); err != nil {
		return err
	}
	afterwards(c.ErrOrStderr(), op, l.in.Policy.Target)
	return nil
}

// showDead shows what is known of a dead voter, and what there is without it.
func showDead(w io.Writer, in membership.Inputs, q membership.Request) {
	var stay []string
	for _, m := range in.View.Voters() {
		if m.ID == q.Member {
			fmt.Fprintf(w, "%s: member %s at %s\n  does not answer: %s\n", q.Dead, m.ID, strings.Join(m.PeerURLs, ", "), m.Error)
			continue
		}
		stay = append(stay, m.Label())
	}
	if since := silentSince(in, q.Dead); !since.IsZero() {
		fmt.Fprintf(w, "  since %s, %s, as the controllers saw it\n", stampOf(since), ago(since, in.Now))
	}
	slices.Sort(stay)
	n := len(stay)
	fmt.Fprintf(w, "%s stay, and all of them answer: %d voters, of whom %d have to agree\nhow many more could be lost: %d now, %d then\n\n",
		strings.Join(stay, ", "), n, membership.Quorum(n), membership.Tolerance(n+1, n), membership.Tolerance(n, n))
}

// silentSince is since when the decisions say that a host does not answer; one
// look cannot tell.
func silentSince(in membership.Inputs, host string) (since time.Time) {
	if in.Previous == nil {
		return since
	}
	for _, r := range in.Previous.Refusals {
		about := r.Subject == host && (r.Code == membership.VoterNotResponding || r.Code == membership.VoterDown)
		if about && (since.IsZero() || r.Since.Before(since)) {
			since = r.Since
		}
	}
	return since
}

// afterwards says what there is to do next.
func afterwards(w io.Writer, op membership.Operation, target int) {
	n := len(op.MembersAfter)
	if n < target {
		fmt.Fprintf(w, "\n%s\n", wrap(fmt.Sprintf("%d voters of %d are left. To give another host a vote: suffrage target %d", n, target, max(target, 3)), ""))
	}
	fmt.Fprintf(w, "\n%s\n", wrap(fmt.Sprintf("If %s comes back, its etcd learns that it was removed, and ends. It can get a vote again once its datastore is moved aside on it (datastore-present).", op.Out), ""))
}
