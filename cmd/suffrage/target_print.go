package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

// TargetShown is what `suffrage target -o json` prints.
type TargetShown struct {
	// Target is the number of voters to keep, Voters how many there are.
	Target int `json:"target"`
	Voters int `json:"voters"`
	// From is owner where it was said by this command, settings where nobody did
	// and controller.target counts.
	From string `json:"from"`
	// By, At and Reason are of the owner.
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Request is what is asked for and not done yet, null for nothing.
	Request *membership.Request `json:"request"`
	// Open is the ID of the operation under way, empty when there is none.
	Open string `json:"open,omitempty"`
	// Refusals are what holds the request back now.
	Refusals []membership.Refusal `json:"refusals,omitempty"`
	// Operations were done while it was followed, the first one first.
	Operations []OperationRecord `json:"operations,omitempty"`
}

func (f *fleet) showTarget(c *cobra.Command, l look) error {
	ctx, cancel := f.asking(c)
	defer cancel()
	p, err := etcd.LoadPolicy(ctx, f.client)
	if err != nil {
		return f.unreachable(err)
	}
	s := TargetShown{Target: f.Controller.Target, Voters: l.d.Voters, From: "settings"}
	if t := p.Target; t != nil {
		s.Target, s.From, s.By, s.At, s.Reason = t.Value, "owner", t.By, t.At, t.Reason
	}
	if s.Request, err = etcd.LoadRequest(ctx, f.client); err != nil { // in dry-run nobody decides on it
		return f.unreachable(err)
	}
	if l.in.Open != nil {
		s.Open = l.in.Open.ID
	}
	if s.Request != nil {
		s.Refusals = l.d.Refusals
	}
	if err := s.print(c); err != nil || wantsJSON(c) {
		return err
	}
	w := c.OutOrStdout()
	switch {
	case l.in.Open != nil:
		fmt.Fprintf(w, "operation %s (%s) is under way, %s: suffrage operations show %[1]s\n", l.in.Open.ID, l.in.Open.Title(), stands(*l.in.Open))
	case s.Request != nil && l.d.Mode != membership.Active:
		fmt.Fprintf(w, "the mode is %s, and nothing is done until: suffrage mode %s\n", l.d.Mode, membership.Active)
	case s.Request != nil:
		headline(w, l.d, l.d.At)
	}
	return nil
}

func (s TargetShown) print(c *cobra.Command) error {
	if wantsJSON(c) {
		return printJSON(c.OutOrStdout(), s)
	}
	w := c.OutOrStdout()
	why := "nobody said otherwise than controller.target in the settings"
	if s.From == "owner" {
		why = fmt.Sprintf("said by %s %s", s.By, ago(s.At, time.Now()))
		if s.Reason != "" {
			why += ": " + s.Reason
		}
	}
	fmt.Fprintf(w, "%d voters of %d (%s)\n", s.Voters, s.Target, why)
	for _, op := range s.Operations {
		fmt.Fprintf(w, "operation %s: %s %s in %s\n", op.ID, op.Title(), op.Outcome, took(op.Seconds))
	}
	switch q := s.Request; {
	case q == nil:
	case q.Target == 0:
		fmt.Fprintf(w, "request: %s, %s\n", q, ago(q.At, time.Now()))
	default:
		fmt.Fprintf(w, "request: %s, %s", q, ago(q.At, time.Now()))
		if n := stay(s.Voters, q.Target); n != q.Target {
			fmt.Fprintf(w, "; to take it back: suffrage target %d", n)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// stay is the number that takes a request back: the present one, or the odd one
// on the way back where that is even.
func stay(voters, target int) int {
	switch {
	case voters%2 == 1:
		return max(voters, 3)
	case target > voters:
		return max(voters-1, 3)
	}
	return voters + 1
}
