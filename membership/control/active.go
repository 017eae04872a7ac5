package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"suffrage/membership"
)

// Held is the Lease while it is held.
type Held interface {
	Term() uint64
	// Check is asked right before each change; any error means: change nothing.
	// The context of lead ends before anybody else could take the Lease.
	Check(ctx context.Context) error
	// Journal is the open operation as an earlier holder left it, empty for none.
	Journal() []byte
	Write(ctx context.Context, journal []byte) error
}

// Acting is what a loop needs to act; without it, it reports.
type Acting struct {
	// Take waits for the Lease and calls lead while it is held.
	Take func(ctx context.Context, purpose string, lead func(context.Context, Held) error) error
	// Peek reads the journal without taking the Lease.
	Peek     func(ctx context.Context) ([]byte, error)
	Members  Members
	Hosts    Hosts
	Removals Removals
	History  History
	Peer     func(host string) string
	// Host is the one that this controller runs on. It is never demoted from here:
	// leadership is handed over first.
	Host string
	// Pace is the time between two rounds while an operation is open.
	Pace time.Duration
}

// ErrHandOver ends a leader whose own host is to lose its vote: another leads on.
var ErrHandOver = errors.New("control: this controller's own host is to lose its vote; another controller has to lead")

// errNothing ends a hold of the Lease in which nothing is to be done any more.
var errNothing = errors.New("control: nothing to do")

// wanted says what a round has to take the Lease for, empty for nothing: an
// operation that somebody left, a plan, or figures that an ended operation lacks.
func (l *Loop) wanted(in membership.Inputs, d membership.Decision) string {
	switch {
	case l.Acting == nil || d.Mode != membership.Active:
		return ""
	case in.Open != nil:
		return "operation " + in.Open.ID
	case d.Kind == membership.Planned:
		return d.Plan.String()
	case slices.ContainsFunc(in.Operations, func(o membership.Operation) bool { _, ok := membership.Measured(in, o); return ok }):
		return "figures of an ended operation"
	}
	return ""
}

// act holds the Lease for as long as there is something to do: an operation
// that a plan begins here, or one that somebody left.
func (l *Loop) act(ctx context.Context, purpose string) error {
	err := l.Acting.Take(ctx, purpose, func(ctx context.Context, held Held) error {
		for {
			if err := l.step(ctx, held); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(l.Acting.Pace):
			}
		}
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// step is one round under the Lease. Guards are asked again on what is seen
// now: the plan that led here may be void.
func (l *Loop) step(ctx context.Context, held Held) error {
	// What the journal says counts only while the Lease is held.
	if err := held.Check(ctx); err != nil {
		return err
	}
	open, err := readJournal(held.Journal())
	if err != nil {
		return err
	}
	in, d, err := l.look(ctx, open)
	if err != nil {
		return err
	}
	switch {
	case l.wanted(in, d) == "":
		return errNothing
	case open == nil && d.Plan != nil && d.Plan.Out == l.Acting.Host:
		return ErrHandOver
	}
	o := Operator{Journal: journal{held}, Members: l.Acting.Members, Hosts: l.Acting.Hosts, Removals: l.Acting.Removals,
		History: l.Acting.History, By: "controller", Peer: l.Acting.Peer}
	if err := o.Act(ctx, in, d); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Rejected, or unknown: the next round looks.
		l.Log.Warn("act not done", "err", err)
	}
	return nil
}

// journal keeps the open operation in the Lease's record.
type journal struct{ Held }

func (j journal) Check(ctx context.Context) (context.Context, error) { return ctx, j.Held.Check(ctx) }

func (j journal) Save(ctx context.Context, op *membership.Operation) error {
	var b []byte
	if op != nil {
		var err error
		if b, err = json.Marshal(op); err != nil {
			return fmt.Errorf("control: write journal: %w", err)
		}
	}
	if bytes.Equal(b, j.Journal()) {
		return nil
	}
	return j.Write(ctx, b)
}

// readJournal gives nil for an empty journal. One that cannot be read stops
// everything: it may be of a version that knows what this one does not.
func readJournal(b []byte) (*membership.Operation, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var op membership.Operation
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&op); err != nil {
		return nil, fmt.Errorf("control: the open operation in the Lease's record cannot be read: %w; run the version that began it", err)
	}
	return &op, nil
}
