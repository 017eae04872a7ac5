package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
)

// lookEvery is the time between two looks at what a number of voters waits for:
// each asks all agents.
const lookEvery = 3 * time.Second

// resized is a number of voters on its way.
type resized struct {
	followed
	gatherer *control.Gatherer
	done     []membership.Operation
	waits    string // the key of what was last said that it waits for
	looked   time.Time
}

// followTarget tells on stderr how a number of voters is reached, through all
// operations and the time between them, and gives those that ended.
func (f *fleet) followTarget(c *cobra.Command, q membership.Request, ended []membership.Operation) ([]membership.Operation, error) {
	w := &resized{followed: followed{f: f, c: c, asked: q, ended: ended}, gatherer: f.gatherer(nil)}
	w.tell("asked for; the controller that leads goes there step by step")
	for {
		over, err := w.look(c.Context())
		switch {
		case c.Context().Err() != nil:
			return w.done, w.left()
		case over || err != nil:
			return w.done, err
		}
		select {
		case <-c.Context().Done():
			return w.done, w.left()
		case <-time.After(followEvery):
		}
	}
}

// look is one look. It is over once nothing is asked for any more.
func (w *resized) look(ctx context.Context) (over bool, err error) {
	reads, cancel := context.WithTimeout(ctx, w.f.callTimeout())
	defer cancel()
	// The request is read first: what is open then was begun before it went.
	there, err := etcd.LoadRequest(reads, w.f.client)
	var open *membership.Operation
	if err == nil {
		open, _, err = w.f.lease.Open(reads)
	}
	var ended []membership.Operation
	if err == nil {
		ended, err = etcd.Operations(reads, w.f.client, recent)
	}
	if err != nil { // while its leader moves etcd does not answer for a moment
		w.tell("etcd cannot be read now: " + w.f.unreachable(err).Error())
		return false, nil
	}
	w.tellEnded(ended)
	recorded := open != nil && slices.ContainsFunc(ended, func(op membership.Operation) bool { return op.ID == open.ID })
	switch {
	case there != nil && !there.Same(w.asked):
		return false, fmt.Errorf("no longer followed: it was replaced by %s", there)
	case recorded:
		return false, nil
	case open != nil:
		w.waits = ""
		w.tell(fmt.Sprintf("operation %s: %s: %s", open.ID, open.Title(), cmp.Or(stands(*open), "begun")))
		return false, nil
	case there == nil:
		return w.judge(ctx)
	}
	return false, w.wait(ctx)
}

// tellEnded tells of operations that ended since, the first one first.
func (w *resized) tellEnded(newest []membership.Operation) {
	for _, op := range slices.Backward(newest) {
		if slices.ContainsFunc(w.ended, func(o membership.Operation) bool { return o.ID == op.ID }) {
			continue
		}
		w.ended, w.done = append(w.ended, op), append(w.done, op)
		text := fmt.Sprintf("operation %s: %s %s", op.ID, op.Title(), op.Outcome)
		if op.TurnedBack != "" {
			text += ": " + op.TurnedBack
		}
		w.tell(text)
	}
}

// wait says what it waits for, when that is something else than before.
func (w *resized) wait(ctx context.Context) error {
	if time.Since(w.looked) < lookEvery {
		return nil
	}
	w.looked = time.Now()
	in, err := w.gatherer.Gather(ctx)
	if err != nil {
		return err
	}
	mode := in.Policy.Mode
	in.Request = &w.asked
	d := membership.Decide(in)
	if key := mode + d.Key(); key != w.waits {
		w.waits = key
		w.tell(waitsFor(d))
	}
	return nil
}

// waitsFor is what a number of voters that is not reached yet waits for.
func waitsFor(d membership.Decision) string {
	switch {
	case d.Mode != membership.Active:
		return fmt.Sprintf("waits for the mode: it is %s: suffrage mode %s", d.Mode, membership.Active)
	case d.Plan != nil:
		return "next: " + d.Plan.String() + "; a controller takes it up in its next round"
	case len(d.Refusals) == 0:
		return ""
	}
	r := d.Refusals[0]
	text := fmt.Sprintf("waits: %s → %s", r, r.Next)
	if more := len(d.Refusals) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more: suffrage plan)", more)
	}
	return text
}

// judge asks, once the request is gone, whether the voters are as many.
func (w *resized) judge(ctx context.Context) (over bool, err error) {
	in, err := w.gatherer.Gather(ctx)
	switch {
	case err != nil:
		return false, err
	case in.View.Error != "":
		w.tell("etcd cannot be read now: " + in.View.Error)
		return false, nil
	case len(in.View.Voters()) == w.asked.Target:
		return true, nil
	}
	in.Request = &w.asked
	d := membership.Decide(in)
	printHolds(w.c.ErrOrStderr(), d, d.At)
	return false, fmt.Errorf("%s were refused or taken back, and there are %d; why is in the log of the controller that leads", asked(w.asked), d.Voters)
}

// left is what there is to say when nobody follows it any more.
func (w *resized) left() error {
	return fmt.Errorf("no longer followed; the controller goes on to %s without you: suffrage target shows how far it is, and what takes it back", asked(w.asked))
}
