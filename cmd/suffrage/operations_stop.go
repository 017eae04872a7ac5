package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

func newOperationsStopCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "stop ID",
		Short: "Take an operation over: it ends where it is",
		Long: `Ends the open operation where it is, with the outcome "stopped": a removal that is
asked for is withdrawn, and nothing else is undone. Members and fences stay as
they are, and what is left to do is yours. It is for an operation that can go
neither on nor back, because somebody else changed the membership.

The controller that leads does it in its next round; it has to be in mode active.

Exit codes: 0 it is told to end; 1 not, with the reason; 2 wrong arguments or
settings, or no operation of that ID is open.`,
		Example: "  suffrage operations stop 20260301t000000-1 --reason \"restored from a snapshot\"",
		Args:    exactly("ID"),
		RunE:    stopOperation,

		ValidArgsFunction: completeOperations,
	}
	sayFlags(c)
	c.Flags().Bool("yes", false, "do not ask")
	return c
}

func stopOperation(c *cobra.Command, args []string) error {
	f, err := openFleet(c)
	if err != nil {
		return err
	}
	defer f.close()
	ctx, cancel := f.asking(c)
	open, _, err := f.lease.Open(ctx)
	cancel()
	switch {
	case err != nil:
		return f.unreachable(err)
	case open == nil || open.ID != args[0]:
		return usage(fmt.Errorf("no operation %q is open: suffrage operations list shows them", args[0]))
	}
	if err := confirm(c, fmt.Sprintf("Operation %s (%s) will end where it is; members and fences stay as they are.", open.ID, open.Title())); err != nil {
		return err
	}
	s, err := saidBy(c)
	if err != nil {
		return err
	}
	stop := membership.Stop{Operation: open.ID, By: s.By, At: s.At, Reason: s.Reason}
	// Whoever read the question may have taken longer than a call may.
	ctx, cancel = f.asking(c)
	defer cancel()
	policy, err := etcd.UpdatePolicy(ctx, f.client, func(p etcd.Policy) (etcd.Policy, error) {
		p.Stop = &stop
		return p, nil
	})
	if err != nil {
		return f.unreachable(err)
	}
	if wantsJSON(c) {
		return printJSON(c.OutOrStdout(), stop)
	}
	fmt.Fprintf(c.OutOrStdout(), "operation %s ends where it is, said by %s\n", open.ID, s.By)
	if q, err := etcd.LoadRequest(ctx, f.client); err == nil && q != nil && q.Target != 0 {
		fmt.Fprintf(c.OutOrStdout(), "the next one begins after the cooldown, since there is a request: %s; %s\n", q, lifts(*q))
	}
	if policy.Mode != nil && policy.Mode.Value != etcd.Active {
		fmt.Fprintln(c.OutOrStdout(), "the mode is "+policy.Mode.Value+": nothing is written until suffrage mode active")
	}
	return nil
}
