package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

func newSwapCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "swap OUT IN",
		Short: "Ask for one swap: OUT loses its vote, IN gets it",
		Long: `Nothing needs to be wrong with OUT; everything else is as in a swap that Suffrage
finds itself: the same guards, the same steps, and the controller carries it out.

It looks first, and where the swap would be refused it says why and asks for
nothing. Else it shows the steps, asks, hands the swap to the controller that
leads and follows it to its end. Ctrl-C ends only the following: the controller
goes on (suffrage operations list). A request that no controller takes up within
10 minutes is refused.

The record is printed on stdout; the plan, the question and the progress are on
stderr. The mode has to be active.

Exit codes: 0 it has completed; 1 it was refused, or ended otherwise, or is no
longer followed, with the reason; 2 wrong arguments or settings, a host that is
not in the roster, or nobody there to confirm.`,
		Example: `  suffrage swap h2 h5 --reason "h2 moves to another rack"`,
		Args:    exactly("OUT", "IN"),
		ValidArgsFunction: func(c *cobra.Command, args []string, to string) ([]string, cobra.ShellCompDirective) {
			return completeHosts(c, args[min(len(args), 1):], to)
		},
		RunE: askSwap,
	}
	sayFlags(c)
	c.Flags().Bool("yes", false, "do not ask")
	return c
}

func askSwap(c *cobra.Command, args []string) error {
	s, err := saidBy(c)
	if err != nil {
		return err
	}
	q := membership.Request{Out: args[0], In: args[1], By: s.By, At: time.Now().UTC(), Reason: s.Reason}
	if err := q.Validate(); err != nil {
		return usage(fmt.Errorf("suffrage swap: %w", err))
	}
	f, err := openFleet(c)
	if err != nil {
		return err
	}
	defer f.close()
	for _, host := range args {
		if err := f.known(host); err != nil {
			return err
		}
	}
	l, err := f.looked(c)
	if err != nil {
		return err
	}
	if err := requestDecided(c, l.in, q); err != nil {
		return err
	}
	if err := confirm(c, swapDoes(q)); err != nil {
		return err
	}
	op, err := f.ask(c, q, l.in.Operations)
	if err != nil {
		return err
	}
	return printAsked(c, op)
}

// swapDoes is the question before a swap.
func swapDoes(q membership.Request) string {
	return fmt.Sprintf("%s will lose its vote and %s will get it.", q.Out, q.In)
}

// ask puts a request that is taken up at once or not at all, and follows it to
// its end. ended are the operations from before it.
func (f *fleet) ask(c *cobra.Command, q membership.Request, ended []membership.Operation) (membership.Operation, error) {
	q.At = time.Now().UTC() // whoever read the question may have taken long
	ctx, cancel := f.asking(c)
	defer cancel()
	if err := etcd.PutRequest(ctx, f.client, q); err != nil {
		return membership.Operation{}, f.notAsked(err)
	}
	return f.follow(c, q, ended)
}

// notAsked says why a request was not put.
func (f *fleet) notAsked(err error) error {
	there := (*etcd.RequestedError)(nil)
	if !errors.As(err, &there) {
		return f.unreachable(err)
	}
	return fmt.Errorf("nothing was asked for: %w; %s", err, lifts(there.There))
}

// lifts says how a request that is there goes.
func lifts(q membership.Request) string {
	if q.Target != 0 {
		return "suffrage target shows how far it is, and what takes it back"
	}
	return "the controller takes it up first"
}

// requestDecided shows what would be done for a request, or ends with why nothing is.
func requestDecided(c *cobra.Command, in membership.Inputs, q membership.Request) error {
	switch err := inTheWay(in, q); {
	case err != nil:
		return err
	case in.Request != nil:
		fmt.Fprintf(c.ErrOrStderr(), "this takes the place of what is asked for: %s; ask again afterwards\n\n", in.Request)
	}
	in.Request = &q
	d := membership.Decide(in)
	if d.Kind == membership.Planned && d.Mode == membership.Active {
		showSteps(c.ErrOrStderr(), d.Plan)
		return nil
	}
	if err := printRefused(c, d); err != nil {
		return err
	}
	if d.Kind == membership.Planned {
		return dryRun(d)
	}
	return fmt.Errorf("nothing was asked for: %s would be refused", asked(q))
}

// inTheWay is what comes before a request, an operation or another request.
func inTheWay(in membership.Inputs, q membership.Request) error {
	switch {
	case in.Open != nil:
		return fmt.Errorf("nothing was asked for: one operation at a time, and %s (%s), asked by %s, has been open since %s: suffrage operations show %[1]s",
			in.Open.ID, in.Open.Title(), in.Open.By, stampOf(in.Open.Begun))
	case in.Request != nil && q.Displaces(*in.Request):
	case in.Request != nil:
		return fmt.Errorf("nothing was asked for: one request at a time, and there is one since %s: %s; %s", stampOf(in.Request.At), in.Request, lifts(*in.Request))
	}
	return nil
}

// printRefused is the answer where nothing is asked for: the plan where there is
// one, else why there is none.
func printRefused(c *cobra.Command, d membership.Decision) error {
	if wantsJSON(c) {
		return printJSON(c.OutOrStdout(), d)
	}
	if d.Plan != nil {
		showSteps(c.OutOrStdout(), d.Plan)
	} else {
		printHolds(c.OutOrStdout(), d, d.At)
	}
	return nil
}

func dryRun(d membership.Decision) error {
	return fmt.Errorf("nothing was asked for: the mode is %s, and nothing is done until: suffrage mode %s", d.Mode, membership.Active)
}

// asked is what a request asks for, without who does.
func asked(q membership.Request) string {
	return strings.TrimSuffix(q.String(), ", asked for by "+q.By)
}

func stampOf(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func showSteps(w io.Writer, p *membership.Plan) {
	fmt.Fprintf(w, "%s, because\n%s\n\nsteps:\n", p, wrap(p.Why, "  "))
	for _, s := range p.Steps {
		fmt.Fprintf(w, "%2d  %s\n", s.Number, s.Text)
	}
	fmt.Fprintln(w)
}

func printAsked(c *cobra.Command, op membership.Operation) error {
	r := recordOf(op, time.Now())
	if wantsJSON(c) {
		if err := printJSON(c.OutOrStdout(), r); err != nil {
			return err
		}
	} else {
		r.print(c.OutOrStdout())
	}
	if op.Outcome != membership.Completed {
		return fmt.Errorf("operation %s ended %s", op.ID, op.Outcome)
	}
	return nil
}
