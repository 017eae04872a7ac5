package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/control"
)

func newQualifyCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "qualify [HOST...]",
		Short: "Prove on your own hosts which of them are good for a vote",
		Long: `Asks of every host, or of those named, what is asked of one that gets a vote:
its agent answers, it is prepared, its disk has room, every signal has a full
window and is within its limit, with every voter. Of a voter, that it answers
and is within a voter's limits. What marks say is shown and not asked.

With --for it looks again at every round for so long and tells each change as it
comes. In the end it says of each host whether it qualifies now and for how much
of the time it did (TIME), for how long it did not at the longest, its worst p99
of round trips to a voter, and how often a path of it was relayed. That is what
no test elsewhere can tell: your disks, your Wi-Fi, your relays, day and night.
Ctrl-C ends it early. It changes nothing.

Exit codes: 0 each host qualified, all the time; 1 one did not, or it could not be
looked at; 2 the command line or the settings file is wrong.`,
		Example:           "  suffrage qualify\n  suffrage qualify h4 h5 --for 24h\n  suffrage qualify -o json",
		ValidArgsFunction: completeHosts,
	}
	lasts := c.Flags().Duration("for", 0, "look again at every round for so long, at most 720h")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *lasts < 0 || *lasts > 720*time.Hour {
			return usage(fmt.Errorf("--for %v: allowed are 0s to 720h", *lasts))
		}
		f, err := openFleet(c)
		if err != nil {
			return err
		}
		defer f.close()
		for _, h := range args {
			if err := f.known(h); err != nil {
				return err
			}
		}
		q := &qualifying{fleet: f, gatherer: f.gatherer(nil), asked: args, tell: c.ErrOrStderr()}
		if err := q.run(c, *lasts); err != nil {
			return err
		}
		if wantsJSON(c) {
			err = printJSON(c.OutOrStdout(), q.hosts)
		} else {
			q.print(c.OutOrStdout(), *lasts > 0)
		}
		if err == nil && slices.ContainsFunc(q.hosts, func(h *Qualified) bool { return h.Qualified < h.Looks }) {
			return &exitError{code: exitFailed}
		}
		return err
	}
	return c
}

// Qualified is one host of `suffrage qualify -o json`: how it was found last, and over
// all looks.
type Qualified struct {
	membership.Qualification
	Looks     int `json:"looks"`
	Qualified int `json:"qualified"` // looks in which it did
	// Longest is the longest time in a row in which it did not, in seconds, as far as the
	// looks tell.
	Longest float64 `json:"longest_not_seconds"`
	// Worst is the highest p99 of its round trips to a voter; null while no window is full.
	Worst *WorstTrip `json:"worst_round_trip"`
	// Relayed are the looks in which an overlay network relayed a path from there.
	Relayed int `json:"relayed"`

	since time.Time // it has not qualified, zero while it does
}

// WorstTrip is a p99 of round trips to a voter.
type WorstTrip struct {
	Peer string         `json:"peer"`
	P99  fitness.Figure `json:"p99"` // seconds; "inf" where more than one in a hundred were lost
	At   time.Time      `json:"at"`
}

// qualifying looks at hosts for a while.
type qualifying struct {
	fleet    *fleet
	gatherer *control.Gatherer
	asked    []string // none for all
	tell     io.Writer
	hosts    []*Qualified
}

// run looks once, or until the time is over or somebody has had enough.
func (q *qualifying) run(c *cobra.Command, lasts time.Duration) error {
	stop := noteSlow(c, fmt.Sprintf("still looking at etcd and %d agents; one that does not answer is waited for", q.fleet.roster.Len()))
	in, err := q.gatherer.Gather(c.Context())
	stop()
	if err != nil {
		return err
	}
	q.add(in)
	if lasts == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), lasts)
	defer cancel()
	round := q.fleet.Controller.Round.Std()
	fmt.Fprintf(q.tell, "looking every %v until %s; Ctrl-C ends it early\n", round, time.Now().Add(lasts).Format("Mon 15:04:05"))
	tick := time.NewTicker(round)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		in, err := q.gatherer.Gather(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			fmt.Fprintf(q.tell, "%s not looked at: %v\n", time.Now().Format("15:04:05"), err)
			continue
		}
		q.add(in)
	}
}

// add takes one look in, and tells who has changed.
func (q *qualifying) add(in membership.Inputs) {
	worst := worstTrips(in)
	for _, now := range membership.Qualify(in) {
		if len(q.asked) > 0 && !slices.Contains(q.asked, now.Host) {
			continue
		}
		i := slices.IndexFunc(q.hosts, func(h *Qualified) bool { return h.Host == now.Host })
		if i < 0 {
			i = len(q.hosts)
			q.hosts = append(q.hosts, &Qualified{})
		}
		h := q.hosts[i]
		if h.Looks > 0 && (now.Qualifies != h.Qualifies || !now.Qualifies && now.Refusal.Code != h.Refusal.Code) {
			fmt.Fprintf(q.tell, "%s %s\n", in.Now.Local().Format("15:04:05"), standing(now))
		}
		h.Qualification = now
		h.Looks++
		if now.Qualifies {
			h.Qualified++
			h.since = time.Time{}
		} else {
			if h.since.IsZero() {
				h.since = in.Now
			}
			h.Longest = max(h.Longest, in.Now.Sub(h.since).Seconds())
		}
		if w := worst[now.Host]; w != nil && (h.Worst == nil || w.P99 > h.Worst.P99) {
			h.Worst = w
		}
		if of, ok := in.View.HostNamed(now.Host); ok && slices.ContainsFunc(of.Facts.Paths, func(p fitness.Path) bool { return p.Kind == "relayed" }) {
			h.Relayed++
		}
	}
}

// worstTrips are each host's highest p99 to a voter of the full windows.
func worstTrips(in membership.Inputs) map[string]*WorstTrip {
	votes := map[string]bool{}
	for _, m := range in.View.Voters() {
		votes[m.Host] = true
	}
	out := map[string]*WorstTrip{}
	for _, r := range in.Readings {
		if r.Signal != fitness.RTT || r.Count < fitness.WindowSize || !votes[r.Peer] {
			continue
		}
		if w := out[r.Host]; w == nil || r.Figure > w.P99 {
			out[r.Host] = &WorstTrip{Peer: r.Peer, P99: r.Figure, At: in.Now}
		}
	}
	return out
}

// standing is how a host is found, on one line.
func standing(q membership.Qualification) string {
	if q.Qualifies {
		return q.Host + " qualifies"
	}
	return fmt.Sprintf("%s does not qualify: %s", q.Host, q.Refusal)
}

func (q *qualifying) print(w io.Writer, lasted bool) {
	head := []string{"HOST", "ROLE", "MARK", "QUALIFIES"}
	if lasted {
		head = append(head[:3], "NOW", "TIME", "LONGEST NOT", "WORST RTT", "RELAYED")
	}
	rows, all := [][]string{head}, 0
	for _, h := range q.hosts {
		row := []string{h.Host, h.Role, h.Mark, "no"}
		if h.Qualifies {
			row[3] = "yes"
			all++
		}
		if lasted {
			longest, worst := "-", "-"
			if h.Qualified < h.Looks {
				longest = cmp.Or(time.Duration(h.Longest*float64(time.Second)).Round(time.Second), time.Second).String()
			}
			if h.Worst != nil {
				worst = h.Worst.P99.Text("s") + " " + h.Worst.Peer
			}
			row = append(row, share(h.Qualified, h.Looks), longest, worst, share(h.Relayed, h.Looks))
		}
		rows = append(rows, row)
	}
	table(w, rows)
	said := ""
	for _, h := range q.hosts {
		if h.Refusal == nil || h.Refusal.Subject == "" && h.Refusal.Detail == said {
			continue
		}
		who := h.Host + ": "
		if h.Refusal.Subject == "" { // of the fleet, so the same of all: once
			who, said = "", h.Refusal.Detail
		}
		fmt.Fprintf(w, "\n%s\n%s\n", wrap(who+h.Refusal.String(), ""), wrap("→ "+h.Refusal.Next, "  "))
	}
	fmt.Fprintf(w, "\n%d of %d qualify\n", all, len(q.hosts))
}

// share is n of all in percent, and rounded neither up to all nor down to none.
func share(n, all int) string {
	switch p := 100 * float64(n) / float64(all); {
	case n == 0:
		return "never"
	case p > 99 && n < all:
		return "over 99 %"
	case p < 1:
		return "under 1 %"
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}
