package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

func newOperationsCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "operations",
		Short: "What was done: every swap with its figures, steps and snapshot",
		Long: fmt.Sprintf(`The operation under way and the last %d that ended, with the figures before and
after, how long each step took, which snapshot was taken and who asked.
An outcome is one of
  completed  it is as planned
  undone     it turned back; the voters are those from before
  stopped    somebody else changed the membership, and the owner took over`, etcd.MaxOperations),
		Example: "  suffrage operations list\n  suffrage operations show 20260301t000000-1",
	}
	c.AddCommand(newOperationsListCmd(), newOperationsShowCmd(), newOperationsWithdrawCmd(), newOperationsStopCmd())
	return c
}

// OperationRecord is an operation as `suffrage operations -o json` prints it:
// what is kept, and what follows from it.
type OperationRecord struct {
	membership.Operation
	// Open: it is under way.
	Open bool `json:"open"`
	// Seconds is how long it took, or has taken so far.
	Seconds float64 `json:"seconds"`
	// WorstLowered is whether the worst p99 went down; absent where one of the
	// two figures is not known.
	WorstLowered *bool `json:"worst_lowered,omitempty"`
	// Steps go before those of Operation.
	Steps []StepTaken `json:"steps"`
}

// StepTaken is one step with how long it took, or has taken so far.
type StepTaken struct {
	membership.StepRecord
	Seconds float64 `json:"seconds"`
}

func recordOf(op membership.Operation, now time.Time) OperationRecord {
	r := OperationRecord{Operation: op, Open: op.Open(), Seconds: lasted(op.Begun, op.Ended, now), Steps: []StepTaken{}}
	for _, s := range op.Steps {
		r.Steps = append(r.Steps, StepTaken{s, lasted(s.Begun, s.Ended, now)})
	}
	if op.WorstBefore != nil && op.WorstAfter != nil {
		lowered := *op.WorstAfter < *op.WorstBefore
		r.WorstLowered = &lowered
	}
	return r
}

// lasted is in seconds. Two controllers' clocks may have written the two ends.
func lasted(begun, ended, now time.Time) float64 {
	if ended.IsZero() {
		ended = now
	}
	return max(0, ended.Sub(begun).Seconds())
}

func newOperationsListCmd() *cobra.Command {
	var last int
	c := &cobra.Command{
		Use:   "list",
		Short: "The operation under way and those that ended, newest first",
		Long: `WORST P99 is the worst round trip between two voters before and after.

Exit codes: 0 listed; 1 not all could be read, with the reason; 2 wrong
arguments or settings.`,
		Example: "  suffrage operations list\n  suffrage operations list --last 5 -o json | jq -r '.[].outcome'",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if last < 1 || last > etcd.MaxOperations {
				return usage(fmt.Errorf("--last %d: allowed are 1 to %d", last, etcd.MaxOperations))
			}
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			ctx, cancel := f.asking(c)
			defer cancel()
			ended, err := etcd.Operations(ctx, f.client, last)
			if err != nil && len(ended) == 0 {
				return f.unreachable(err)
			}
			open, _, openErr := f.lease.Open(ctx)
			now := time.Now()
			out := records(open, ended, now)
			out = out[:min(len(out), last)]
			if wantsJSON(c) {
				return errors.Join(printJSON(c.OutOrStdout(), out), err, openErr)
			}
			if len(out) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "no operations yet")
			} else {
				table(c.OutOrStdout(), operationRows(out, now))
			}
			return errors.Join(err, openErr)
		},
	}
	c.Flags().IntVar(&last, "last", 20, fmt.Sprintf("how many, 1 to %d", etcd.MaxOperations))
	return c
}

// records are the open operation, where there is one, and those that ended, as they
// come. One that was recorded and is still in the journal has ended.
func records(open *membership.Operation, ended []membership.Operation, now time.Time) []OperationRecord {
	out := []OperationRecord{}
	if open != nil && !slices.ContainsFunc(ended, func(op membership.Operation) bool { return op.ID == open.ID }) {
		out = append(out, recordOf(*open, now))
	}
	for _, op := range ended {
		out = append(out, recordOf(op, now))
	}
	return out
}

func operationRows(all []OperationRecord, now time.Time) [][]string {
	rows := [][]string{{"ID", "OUTCOME", "CHANGE", "BEGAN", "TOOK", "WORST P99", "BY"}}
	for _, r := range all {
		rows = append(rows, []string{r.ID, r.outcome(), r.change(), ago(r.Begun, now), took(r.Seconds), r.worst(), r.By})
	}
	return rows
}

func newOperationsShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "All that is known of one operation",
		Long: `Exit codes: 0 shown; 1 it could not be read, with the reason; 2 wrong arguments
or settings, or no operation of that ID.`,
		Example: "  suffrage operations show 20260301t140005-7\n  suffrage operations show 20260301t140005-7 -o json | jq .steps",
		Args:    exactly("ID"),

		ValidArgsFunction: completeOperations,
		RunE: func(c *cobra.Command, args []string) error {
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			ctx, cancel := f.asking(c)
			defer cancel()
			op, err := etcd.FindOperation(ctx, f.client, f.lease, args[0])
			if errors.Is(err, etcd.ErrNoOperation) {
				return usage(fmt.Errorf("no operation %s; those that are kept: suffrage operations list", args[0]))
			}
			if err != nil {
				return f.unreachable(err)
			}
			r := recordOf(op, time.Now())
			if wantsJSON(c) {
				return printJSON(c.OutOrStdout(), r)
			}
			r.print(c.OutOrStdout())
			return nil
		},
	}
}

func newOperationsWithdrawCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "withdraw HOST",
		Short: "Take back a removal that an ended operation left behind",
		Long: `A removal that is asked for and belongs to no open operation blocks every swap
(stale-removal), since it could be acted on later. This takes it back and reads
it back. It refuses while its operation is under way, which does it by itself.

Exit codes: 0 there is none any more; 1 there is, with the reason; 2 wrong
arguments or settings, or a host that is not in the roster.`,
		Example:           "  suffrage operations withdraw h3",
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
			open, _, err := f.lease.Open(ctx)
			if err != nil {
				return f.unreachable(err)
			}
			id := ""
			if open != nil {
				id = open.ID
			}
			if err := f.withdraw(ctx, args[0], id); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(c.OutOrStdout(), map[string]any{"host": args[0], "asked_for": false})
			}
			fmt.Fprintf(c.OutOrStdout(), "no removal is asked for on %s\n", args[0])
			return nil
		},
	}
}

// withdraw takes a removal back that is not of the open operation.
func (f *fleet) withdraw(ctx context.Context, host, open string) error {
	if f.Flavour != k3s {
		return etcd.WithdrawStale(ctx, f.client, host, open)
	}
	return f.nodes.Withdraw(ctx, host, func(there membership.Removal) error {
		if open != "" && there.Operation == open {
			return fmt.Errorf("operation %s is under way and takes it back itself", open)
		}
		return nil
	})
}

// completeOperations completes the IDs of operations, with what each is. A shell does not
// wait long.
func completeOperations(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	f, err := openFleet(c)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer f.close()
	ctx, cancel := context.WithTimeout(c.Context(), slowFrom)
	defer cancel()
	var all []membership.Operation
	if open, _, err := f.lease.Open(ctx); err == nil && open != nil {
		all = append(all, *open)
	}
	var ended []membership.Operation
	if c.Name() != "stop" { // only what is open can be stopped
		ended, _ = etcd.Operations(ctx, f.client, recent)
	}
	var ids []string
	for _, op := range append(all, ended...) {
		ids = append(ids, op.ID+"\t"+op.Title()+" "+cmp.Or(string(op.Outcome), "under way"))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
