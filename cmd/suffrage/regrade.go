package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"suffrage/fitness"
	"suffrage/membership"
)

func newRegradeCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "regrade HOST full|etcd-only",
		Short: "Ask for another grade of a K3s server: full, or etcd-only with its vote kept",
		Long: `An etcd-only server keeps its vote and runs no API server, scheduler or
controllers. It is what the controller does under memory pressure, and takes back:
docs/k3s.md. A server that you make etcd-only stays so until you say full.

How much memory there is, and when the last regrade was, is nothing against it.
Every guard is: it restarts K3s on HOST, so for some seconds the other voters have
to do without it. Another number of voters than there should be is nothing against
full, and where a number of voters is waited for this takes the place of that
request: ask for the number again afterwards.

It looks first, and where the regrade would be refused it says why and asks for
nothing. Else it shows the steps, asks, hands it to the controller that leads and
follows it to its end, as suffrage swap does.

Exit codes: 0 it has completed, or is so already; 1 it was refused, or ended
otherwise, or is no longer followed, with the reason; 2 wrong arguments or
settings, a host that is not in the roster, or nobody there to confirm.`,
		Example: `  suffrage regrade h2 etcd-only --reason "room for the build"
  suffrage regrade h2 full`,
		Args: exactly("HOST", "GRADE"),
		ValidArgsFunction: func(c *cobra.Command, args []string, to string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{string(fitness.Full), string(fitness.EtcdOnly)}, cobra.ShellCompDirectiveNoFileComp
			}
			return completeHosts(c, args, to)
		},
		RunE: askRegrade,
	}
	sayFlags(c)
	c.Flags().Bool("yes", false, "do not ask")
	return c
}

func askRegrade(c *cobra.Command, args []string) error {
	s, err := saidBy(c)
	if err != nil {
		return err
	}
	to := fitness.Grade(args[1])
	if to != fitness.Full && to != fitness.EtcdOnly {
		return usage(fmt.Errorf("suffrage regrade: %.40q is no grade: %s or %s", args[1], fitness.Full, fitness.EtcdOnly))
	}
	q := membership.Request{Regrade: args[0], To: to, By: s.By, At: time.Now().UTC(), Reason: s.Reason}
	if err := q.Validate(); err != nil {
		return usage(fmt.Errorf("suffrage regrade: %w", err))
	}
	f, err := openFleet(c)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.known(q.Regrade); err != nil {
		return err
	}
	l, err := f.looked(c)
	if err != nil {
		return err
	}
	if h, ok := l.in.View.HostNamed(q.Regrade); ok && h.Grade() == q.To && l.in.Open == nil {
		fmt.Fprintf(c.ErrOrStderr(), "%s is %s already\n", q.Regrade, q.To)
		return nil
	}
	if err := requestDecided(c, l.in, q); err != nil {
		return err
	}
	if err := confirm(c, fmt.Sprintf("K3s on %s will be restarted as %s; the other voters do without it meanwhile.", q.Regrade, q.To)); err != nil {
		return err
	}
	op, err := f.ask(c, q, l.in.Operations)
	if err != nil {
		return err
	}
	return printAsked(c, op)
}
