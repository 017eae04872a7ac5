package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

// PauseShown is what `suffrage pause -o json` and `suffrage resume -o json` print.
type PauseShown struct {
	Paused membership.Say `json:"paused"`
	// Open is the ID of the operation under way, which goes on to its next safe
	// place; empty when there is none.
	Open string `json:"open,omitempty"`
}

// pauseDoes is what a pause does.
const pauseDoes = `Suffrage goes on looking and reporting, and starts nothing new. An operation
under way turns back if nothing was changed yet, and else goes on to its next
safe place.`

// resumeDoes is what lifting it does.
const resumeDoes = "Suffrage may start operations again, in mode active."

func newPauseCmd() *cobra.Command {
	return pauseCmd(true, &cobra.Command{
		Use:   "pause",
		Short: "Start nothing new, for the whole fleet, until resume",
		Long: pauseDoes + `
It is kept in etcd with who said so, when and why.

Exit codes: 0 paused; 1 not, with the reason; 2 wrong arguments or settings.`,
		Example: `  suffrage pause --reason "moving the rack"`,
	})
}

func newResumeCmd() *cobra.Command {
	return pauseCmd(false, &cobra.Command{
		Use:     "resume",
		Short:   "Let Suffrage start operations again, after pause",
		Long:    "Lifts what `suffrage pause` said: " + resumeDoes + "\n\nExit codes: 0 resumed; 1 not, with the reason; 2 wrong arguments or settings.",
		Example: "  suffrage resume",
	})
}

func pauseCmd(pause bool, c *cobra.Command) *cobra.Command {
	c.Args = exactly()
	c.RunE = func(c *cobra.Command, _ []string) error {
		f, err := openFleet(c)
		if err != nil {
			return err
		}
		defer f.close()
		ctx, cancel := f.asking(c)
		defer cancel()
		s, err := saidBy(c)
		if err != nil {
			return err
		}
		say := membership.Say{Value: pause, By: s.By, At: s.At, Reason: s.Reason}
		if err := f.pause(ctx, say); err != nil {
			return f.unreachable(err)
		}
		shown := PauseShown{Paused: say}
		open, _, err := f.lease.Open(ctx)
		if err == nil && open != nil {
			shown.Open = open.ID
		}
		if wantsJSON(c) {
			return printJSON(c.OutOrStdout(), shown)
		}
		w := c.OutOrStdout()
		if !pause {
			fmt.Fprintf(w, "resumed, said by %s\n", say.By)
			return nil
		}
		fmt.Fprintf(w, "paused, said by %s: nothing new is started\n", say.By)
		switch {
		case err != nil:
			fmt.Fprintf(w, "whether an operation is under way could not be read: %v\n", err)
		case open != nil:
			fmt.Fprintf(w, "operation %s is under way and goes on to its next safe place: suffrage operations show %[1]s\n", open.ID)
		}
		return nil
	}
	sayFlags(c)
	return c
}

// pause writes down that nothing new is started, or that it may be.
func (f *fleet) pause(ctx context.Context, say membership.Say) error {
	_, err := etcd.UpdatePolicy(ctx, f.client, func(p etcd.Policy) (etcd.Policy, error) {
		p.Paused = &say
		return p, nil
	})
	return err
}
