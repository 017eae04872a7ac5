package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
)

func newPlanCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "What would be done now, step by step, or each reason why not",
		Long: `Decides from what it sees at this moment and prints the plan with its steps, or
every refusal with what would lift it. It changes nothing.

With -o json it prints the decision; docs/inputs.md describes the form.`,
		Example: "  suffrage plan\n  suffrage plan -o json | jq -r '.refusals[].code'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return looking(c, func(_ *fleet, l look) error { return printDecision(c, l.d) })
		},
	}
}

func printDecision(c *cobra.Command, d membership.Decision) error {
	if wantsJSON(c) {
		return printJSON(c.OutOrStdout(), d)
	}
	showPlan(c.OutOrStdout(), d, d.At)
	return nil
}

func showPlan(w io.Writer, d membership.Decision, now time.Time) {
	headline(w, d, now)
	if d.Plan == nil {
		return
	}
	fmt.Fprintf(w, "\nsteps (%s: none is taken):\n", d.Mode)
	for _, s := range d.Plan.Steps {
		fmt.Fprintf(w, "%2d  %s\n", s.Number, s.Text)
	}
	switch {
	case len(d.Plan.Ranked) == 0:
		return
	case d.Plan.In == "":
		fmt.Fprintln(w, "\nvoters that may go, the first to go first:")
	default:
		fmt.Fprintln(w, "\ncandidates, best first:")
	}
	for _, r := range d.Plan.Ranked {
		fmt.Fprintln(w, wrapOn(w, r, "  "))
	}
}
