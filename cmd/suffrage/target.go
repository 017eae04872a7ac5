package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

func newTargetCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "target [N]",
		Short: "Show or set how many voters there are to be, and go there",
		Long: `Without N it shows the number, who set it, and what is under way.

With N, an odd number of 3 to 7, the fleet grows or shrinks to it: one vote at a
time, under the same guards as a swap, the best candidate first and the voter
that is missed the least. Between two of them a cooldown passes.

It looks first. A number that cannot be is refused with the reason and nothing
is written. Else it shows what is next, or what holds it up and what lifts that,
asks, and writes the number and the request into etcd. The controller that leads
goes there step by step, and waits without a limit for what lifts. The command
follows it; Ctrl-C ends only the following. Another number replaces the one
before, and the present number of voters takes it back: no vote moves then. While
it is under way no swap is made.

The number is the fleet's: it goes before controller.target of the settings
files. The answer is on stdout, all else on stderr. The mode has to be active.

Exit codes: 0 shown, or the voters are as many; 1 it was refused, or replaced, or
is no longer followed, with the reason; 2 wrong arguments or settings, or nobody
there to confirm.`,
		Example: `  suffrage target
  suffrage target 5 --reason "two more racks"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(fmt.Errorf("target takes one number of voters, or none to show it; got %q", args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return looking(c, func(f *fleet, l look) error { return f.showTarget(c, l) })
			}
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 || n > 99 {
				return usage(fmt.Errorf("target %.40q: want a number of voters, odd, 3 to 7", args[0]))
			}
			return askTarget(c, n)
		},
	}
	sayFlags(c)
	c.Flags().Bool("yes", false, "do not ask")
	return c
}

func askTarget(c *cobra.Command, n int) error {
	s, err := saidBy(c)
	if err != nil {
		return err
	}
	q := membership.Request{Target: n, By: s.By, At: time.Now().UTC(), Reason: s.Reason}
	if err := q.Validate(); err != nil {
		return usage(fmt.Errorf("suffrage target: %w", err))
	}
	f, err := openFleet(c)
	if err != nil {
		return err
	}
	defer f.close()
	l, err := f.looked(c)
	if err != nil {
		return err
	}
	goes, err := targetDecided(c, l.in, q)
	if err != nil {
		return err
	}
	if goes {
		if err := confirm(c, fmt.Sprintf("The fleet will go from %d to %d voters, one at a time, until it is there or you say otherwise.", l.d.Voters, n)); err != nil {
			return err
		}
	}
	q.At = time.Now().UTC() // whoever read the question may have taken long
	ctx, cancel := f.asking(c)
	defer cancel()
	if err := etcd.SetTarget(ctx, f.client, etcd.Number{Value: n, By: q.By, At: q.At, Reason: q.Reason}, goes); err != nil {
		return f.notAsked(err)
	}
	var done []membership.Operation
	if goes {
		if done, err = f.followTarget(c, q, l.in.Operations); err != nil {
			return err
		}
	} else if asked := l.in.Request; asked != nil {
		fmt.Fprintf(c.ErrOrStderr(), "taken back: %s\n", asked)
	}
	shown := TargetShown{Target: n, Voters: n, From: "owner", By: q.By, At: q.At, Reason: q.Reason}
	for _, op := range done {
		shown.Operations = append(shown.Operations, recordOf(op, time.Now()))
	}
	return shown.print(c)
}

// targetDecided shows what is next for a number of voters, or what it waits for,
// or ends with why it is refused. goes is false where there is nowhere to go.
func targetDecided(c *cobra.Command, in membership.Inputs, q membership.Request) (goes bool, err error) {
	open := in.Open
	switch {
	case in.View.Error != "":
		return false, fmt.Errorf("nothing was asked for: %s: suffrage status", in.View.Error)
	case in.Request != nil && in.Request.Target == 0:
		return false, fmt.Errorf("nothing was asked for: one request at a time, and there is one since %s: %s; %s", stampOf(in.Request.At), in.Request, lifts(*in.Request))
	}
	in.Open, in.Request, in.Policy.Target = nil, &q, q.Target
	d := membership.Decide(in)
	rejected := d
	rejected.Refusals = slices.DeleteFunc(slices.Clone(d.Refusals), func(r membership.Refusal) bool { return r.Kind != membership.Reject })
	switch {
	case len(rejected.Refusals) > 0:
		if err := printRefused(c, rejected); err != nil {
			return false, err
		}
		return false, fmt.Errorf("nothing was asked for: %s would be refused", asked(q))
	case open == nil && d.Voters == q.Target:
		return false, nil
	case d.Mode != membership.Active:
		if err := printRefused(c, d); err != nil {
			return false, err
		}
		return false, dryRun(d)
	}
	w := c.ErrOrStderr()
	switch {
	case open != nil:
		fmt.Fprintf(w, "operation %s (%s) is under way; what comes after it is decided then\n\n", open.ID, open.Title())
	case d.Plan != nil:
		showSteps(w, d.Plan)
	default:
		fmt.Fprintln(w, "not now; it would wait for this:")
		printHolds(w, d, d.At)
		fmt.Fprintln(w)
	}
	return true, nil
}
