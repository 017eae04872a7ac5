package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

func newClearQuarantineCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "clear-quarantine HOST",
		Short: "Forgive a host the swaps and regrades that failed, so that it may be tried again",
		Long: `A host whose swap failed gets no vote for 30 minutes, and twice as long after
each further failure in a row, up to 7 days; one whose regrade failed is not
regraded by itself for as long; one that lost its vote keeps out for an hour.
This forgets what was until now. What is still wrong with the host will
fail again: suffrage operations list tells what it was.

Exit codes: 0 done; 1 not, with the reason; 2 wrong arguments or settings, or a
host that is not in the roster.`,
		Example:           `  suffrage clear-quarantine h4 --reason "opened port 2380"`,
		Args:              exactly("HOST"),
		ValidArgsFunction: completeHosts,
		RunE: func(c *cobra.Command, args []string) error {
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			if err := f.known(args[0]); err != nil {
				return err
			}
			ctx, cancel := f.asking(c)
			defer cancel()
			s, err := saidBy(c)
			if err != nil {
				return err
			}
			// What has ended is over, whatever the clocks of the owner and of the
			// controller say of which came first.
			ended, err := etcd.Operations(ctx, f.client, recent)
			if err != nil {
				return f.unreachable(err)
			}
			for _, op := range ended {
				if slices.Contains(op.About(), args[0]) && op.Ended.After(s.At) {
					s.At = op.Ended
				}
			}
			mark, err := etcd.UpdateMark(ctx, f.client, args[0], func(m membership.Mark) (membership.Mark, error) {
				m.Cleared = &membership.Say{Value: true, By: s.By, At: s.At, Reason: s.Reason}
				return m, nil
			})
			if err != nil {
				return f.unreachable(err)
			}
			if wantsJSON(c) {
				h, _ := f.roster.ByName(args[0])
				return printJSON(c.OutOrStdout(), HostMark{h.Name, h.Address.String(), mark, mark.Word()})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is forgiven what failed until now, said by %s\n", args[0], s.By)
			if !mark.IsEligible() {
				fmt.Fprintf(c.OutOrStdout(), "it is %s: before it can get a vote: suffrage host eligible %s\n", mark.Word(), args[0])
			}
			return nil
		},
	}
	sayFlags(c)
	return c
}
