package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

// followEvery is the time between two looks at the operation that is followed.
const followEvery = 500 * time.Millisecond

// followed is a request on its way, and what was said of it.
type followed struct {
	f     *fleet
	c     *cobra.Command
	asked membership.Request
	// ended are the operations from before the request.
	ended []membership.Operation
	id    string // of the operation, once it has begun
	said  string
}

// follow tells on stderr how a request fares, until its operation has ended.
func (f *fleet) follow(c *cobra.Command, q membership.Request, ended []membership.Operation) (membership.Operation, error) {
	w := &followed{f: f, c: c, asked: q, ended: ended}
	w.tell("asked for; the controller that leads takes it up in its next round")
	for {
		op, err := w.look(c.Context())
		if c.Context().Err() != nil {
			return op, w.left()
		}
		if err != nil || op.ID != "" && !op.Open() {
			return op, err
		}
		select {
		case <-c.Context().Done():
			return op, w.left()
		case <-time.After(followEvery):
		}
	}
}

// look is one look: the operation where there is one, an error where there will
// be none.
func (w *followed) look(ctx context.Context) (membership.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, w.f.callTimeout())
	defer cancel()
	if w.id == "" {
		gone, err := w.find(ctx)
		if err != nil {
			w.tell("etcd cannot be read now: " + w.f.unreachable(err).Error())
			return membership.Operation{}, nil
		}
		if w.id == "" && gone {
			return membership.Operation{}, w.refused()
		}
		if w.id == "" {
			return membership.Operation{}, w.wait(ctx)
		}
		w.tell("operation " + w.id + " has begun")
	}
	op, err := etcd.FindOperation(ctx, w.f.client, w.f.lease, w.id)
	if err != nil { // while its leader moves etcd does not answer for a moment
		w.tell("etcd cannot be read now: " + w.f.unreachable(err).Error())
		return membership.Operation{}, nil
	}
	w.tell(stands(op))
	return op, nil
}

// slow is how long a request waits without a word: some rounds.
const slow = 30 * time.Second

// wait says what a request may wait for, and takes it back when it has been
// there for too long: what it became, or that it was refused, is seen next.
func (w *followed) wait(ctx context.Context) error {
	switch waited := time.Since(w.asked.At); {
	case waited > membership.RequestTime:
		if err := etcd.ClearRequest(ctx, w.f.client, nil, w.asked); err != nil {
			return w.f.unreachable(err)
		}
		w.tell("no controller took it up, so it was taken back")
	case waited > slow:
		w.tell("not taken up yet; whether a controller leads, and the mode: suffrage status")
	}
	return nil
}

// find looks for the operation that the request became. The request is read
// first: it goes after the operation has begun.
func (w *followed) find(ctx context.Context) (gone bool, err error) {
	there, err := etcd.LoadRequest(ctx, w.f.client)
	if err != nil {
		return false, err
	}
	open, _, err := w.f.lease.Open(ctx)
	if err != nil {
		return false, err
	}
	if open != nil && w.ours(*open) {
		w.id = open.ID
		return false, nil
	}
	if there != nil && there.Same(w.asked) {
		return false, nil
	}
	ended, err := etcd.Operations(ctx, w.f.client, recent)
	if i := slices.IndexFunc(ended, w.ours); i >= 0 {
		w.id = ended[i].ID
	}
	return true, err
}

// ours: clocks of two hosts are not compared, so it is the one that was not
// there before.
func (w *followed) ours(op membership.Operation) bool {
	return op.Out == cmp.Or(w.asked.Out, w.asked.Dead) && op.In == w.asked.In && op.Regrade == w.asked.Regrade && op.To == w.asked.To && op.Dead == (w.asked.Dead != "") && op.By == w.asked.By &&
		!slices.ContainsFunc(w.ended, func(o membership.Operation) bool { return o.ID == op.ID })
}

// refused says why the controller let go of the request: what is in its way now.
func (w *followed) refused() error {
	l, err := w.f.looked(w.c)
	if err != nil {
		return err
	}
	if l.in.Open == nil {
		l.in.Request = &w.asked
		l.d = membership.Decide(l.in)
		printHolds(w.c.ErrOrStderr(), l.d, l.d.At)
	} else {
		w.tell("operation " + l.in.Open.ID + " is open, and there is one at a time")
	}
	return fmt.Errorf("%s was refused, and nothing was changed; what was in its way then is in the log of the controller that leads", asked(w.asked))
}

// left is what there is to say when nobody follows it any more.
func (w *followed) left() error {
	if w.id == "" {
		return fmt.Errorf("no longer followed; the request stands and the controller takes it up without you: suffrage operations list")
	}
	return fmt.Errorf("no longer followed; the controller goes on with it: suffrage operations show %s", w.id)
}

// tell says what was not just said.
func (w *followed) tell(text string) {
	if text != "" && text != w.said {
		fmt.Fprintf(w.c.ErrOrStderr(), "%s  %s\n", time.Now().Format("15:04:05"), text)
		w.said = text
	}
}

// stands is where an operation stands: its step.
func stands(op membership.Operation) string {
	switch i := slices.IndexFunc(op.Steps, func(s membership.StepRecord) bool { return s.Ended.IsZero() }); {
	case !op.Open():
		return string(op.Outcome)
	case op.TurnedBack != "":
		return "turning back: " + op.TurnedBack
	case i >= 0:
		return "step " + op.Steps[i].Name
	}
	return ""
}
