package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"suffrage/membership"
)

// Acting is what a loop needs to act; a loop without it reports.
type Acting struct {
	// Take waits for the Lease and calls lead while it is held, with an Operator
	// whose journal is in the Lease's record, and a way to read that journal. The
	// context of lead ends before anybody else could take the Lease.
	Take func(ctx context.Context, purpose string, lead Lead) error
	// Peek reads the open operation without taking the Lease, nil for none.
	Peek func(ctx context.Context) (*membership.Operation, error)
	// Host is the one that this controller runs on. It is never demoted or regraded
	// from here: leadership is handed over first.
	Host string
	// Away reports whether an error of the Book's is that the API server of this
	// controller does not answer it; nil where it asks none.
	Away func(error) bool
	// Pace is the longest pause between two rounds while the Lease is held.
	Pace time.Duration
}

// Lead is what is done while the Lease is held. open is the operation that the
// journal has, nil for none.
type Lead func(ctx context.Context, o *Operator, open func() (*membership.Operation, error)) error

// ErrHandOver ends a leader whose own host is to lose its vote, or whose server, with
// the API that it may use, is to restart: another leads on.
var ErrHandOver = errors.New("control: this controller's own host is to lose its vote, or to be regraded; another controller has to lead")

// errNothing ends a hold of the Lease in which nothing is to be done any more.
var errNothing = errors.New("control: nothing to do")

// wanted says what a round has to take the Lease for, empty for nothing: an
// operation that somebody left, a request of the owner's that is over, a plan, or
// figures that an ended operation lacks. While a request waits, nothing is held.
func (l *Loop) wanted(in membership.Inputs, d membership.Decision) string {
	switch {
	case l.Acting == nil || d.Mode != membership.Active:
		return ""
	case in.Open != nil:
		return "operation " + in.Open.ID
	case in.Request != nil && in.Request.Over(d):
		return in.Request.String() // to clear it
	case d.Kind == membership.Planned:
		return d.Plan.String()
	case slices.ContainsFunc(in.Operations, func(o membership.Operation) bool { _, ok := membership.Measured(in, o); return ok }):
		return "figures of an ended operation"
	}
	return ""
}

// act holds the Lease for as long as there is something to do. What was carried
// out and answered shows in the next look, so that comes at once. What is done
// once more showed nothing, and is paced as all that waits: what an act leads to,
// such as a learner that catches up, mostly comes soon, so the first pauses are
// short, each twice the one before, up to Pace.
func (l *Loop) act(ctx context.Context, purpose string) error {
	taking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	patience := time.AfterFunc(takeTime, func() { stop(errNothing) })
	defer patience.Stop()
	err := l.Acting.Take(taking, purpose, func(ctx context.Context, o *Operator, open func() (*membership.Operation, error)) error {
		if !patience.Stop() {
			return errNothing
		}
		done, pause := map[string]bool{}, l.Acting.Pace
		for {
			did, err := l.step(ctx, o, open)
			if err != nil {
				return err
			}
			if did != "" && !done[did] {
				done[did], pause = true, l.Acting.Pace/16
				continue
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(pause):
				pause = min(2*pause, l.Acting.Pace)
			}
		}
	})
	if errors.Is(err, errNothing) || ctx.Err() == nil && errors.Is(context.Cause(taking), errNothing) {
		return nil
	}
	return err
}

// takeTime is how long the Lease is waited for before the next look: longer than a
// silent holder may keep it, 10 minutes. Where its store does not answer nobody would
// look any more.
const takeTime = 15 * time.Minute

// step is one round under the Lease, and names what it carried out. Guards are
// asked again on what is seen now: the plan that led here may be void.
func (l *Loop) step(ctx context.Context, o *Operator, journal func() (*membership.Operation, error)) (did string, err error) {
	// What the journal says counts only while the Lease is held.
	if err := o.Journal.Check(ctx); err != nil {
		return "", err
	}
	open, err := journal()
	if err != nil {
		return "", err
	}
	in, d, err := l.look(ctx, open, o)
	if err != nil {
		return "", err
	}
	if in.Request != nil && in.Request.Over(d) {
		// It was taken up, or is refused, by what is in its way or by another
		// operation that is open: it must not fire later. Or the voters are as many
		// as it asks for.
		if err := o.ClearRequest(ctx, *in.Request); err != nil {
			l.Log.Warn("the owner's request not cleared", "request", in.Request.String(), "err", err)
		} else {
			l.Log.Info("the owner's request cleared", "request", in.Request.String(), "decision", string(d.Kind))
			in.Request = nil
		}
	}
	switch {
	case l.wanted(in, d) == "":
		return "", errNothing
	case open == nil && d.Plan != nil && (d.Plan.Out == l.Acting.Host || d.Plan.Regrade == l.Acting.Host):
		return "", ErrHandOver
	}
	if err := o.Act(ctx, in, d); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		// Rejected, or unknown: the next round looks.
		l.Log.Warn("act not done", "err", err)
		return "", nil
	}
	return carriedOut(d), nil
}

// carriedOut names what a decision that was acted on changed, empty for nothing.
func carriedOut(d membership.Decision) string {
	switch {
	case d.Plan != nil:
		return d.Plan.String()
	case d.Step == nil || d.Step.Verb == membership.Wait:
		return ""
	}
	return string(d.Step.Verb) + " " + d.Step.Host
}
