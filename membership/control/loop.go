package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Loop decides once a round for as long as it leads. It reports: one log line
// per change of decision, the inputs of every changed decision kept in a
// bounded directory, metrics, and the newest decision for whoever asks.
type Loop struct {
	Gatherer *Gatherer
	// Round is the time between the starts of two rounds.
	Round    time.Duration
	Recorder *Recorder // nil keeps nothing
	Timeline *Timeline // nil keeps none
	Metrics  *Metrics
	Log      *slog.Logger
	// Publish is told every round; nil tells nobody. It must not wait for anything.
	Publish func(membership.Inputs, membership.Decision)

	// Acting is nil in dry-run.
	Acting *Acting

	key   string    // of the decision that was reported last
	away  time.Time // since when the API server has not answered, zero while it does
	leads atomic.Bool
	last  atomic.Pointer[State]
}

// State is the newest round.
type State struct {
	Inputs   membership.Inputs
	Decision membership.Decision
	Took     time.Duration
	// Series gives copies of what a host's agent told so far.
	Series func(host string) []fitness.Series
}

// Leading reports whether Run is at work.
func (l *Loop) Leading() bool { return l.leads.Load() }

// Last is the newest round, nil before the first has ended.
func (l *Loop) Last() *State { return l.last.Load() }

// Run decides until the context ends. It leaves nothing behind.
func (l *Loop) Run(ctx context.Context) error {
	l.key, l.away = "", time.Time{}
	if l.Timeline != nil {
		l.Timeline.Begin() // another controller may have led meanwhile
	}
	l.leads.Store(true)
	defer func() {
		l.leads.Store(false)
		l.last.Store(nil)
	}()
	tick := time.NewTicker(l.Round)
	defer tick.Stop()
	for {
		open, err := l.peek(ctx)
		if err != nil {
			return err
		}
		in, d, err := l.look(ctx, open, nil)
		if err != nil {
			return err
		}
		if purpose := l.wanted(in, d); purpose != "" {
			if err := l.act(ctx, purpose); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// peek is the open operation, nil in dry-run: it holds no Lease and leaves none.
func (l *Loop) peek(ctx context.Context) (*membership.Operation, error) {
	if l.Acting == nil {
		return nil, nil
	}
	open, err := l.Acting.Peek(ctx)
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("the open operation cannot be read", "err", err)
	}
	return open, nil
}

// look is one round up to its decision, and its report, and ends with ErrAway where
// another controller is to go on. o is the operator while
// the Lease is held, nil while it is not.
func (l *Loop) look(ctx context.Context, open *membership.Operation, o *Operator) (membership.Inputs, membership.Decision, error) {
	began := time.Now()
	in, err := l.Gatherer.Gather(ctx)
	if err != nil {
		return in, membership.Decision{}, fmt.Errorf("control: round ended: %w", err)
	}
	if in.Open = open; o != nil {
		in.Term, in.Failed = o.Journal.Term(), o.Failed
	}
	d := membership.Decide(in)
	if err := l.Gatherer.Remember(ctx, d); err != nil && ctx.Err() == nil {
		l.Log.Warn("ages of the decision not written down", "err", err)
	}
	took := time.Since(began)
	l.last.Store(&State{in, d, took, l.Gatherer.Series})
	if l.Publish != nil {
		l.Publish(in, d)
	}
	l.Metrics.count(d, took)
	if k := d.Key(); k != l.key {
		l.key = k
		l.Metrics.changes.Inc()
		l.changed(in, d)
	}
	if l.Timeline != nil {
		if err := l.Timeline.Note(in, d); err != nil {
			l.Metrics.recordFailures.Inc()
			l.Log.Error("timeline not kept", "err", err)
		}
	}
	return in, d, l.giveWay(in)
}

// changed reports a decision that says something else than the one before.
func (l *Loop) changed(in membership.Inputs, d membership.Decision) {
	attrs := []any{"kind", string(d.Kind), "mode", d.Mode, "voters", d.Voters, "fit_voters", d.FitVoters, "tolerance", d.Tolerance}
	if d.Plan != nil {
		attrs = append(attrs, "plan", d.Plan.String(), "out", d.Plan.Out, "in", d.Plan.In, "why", d.Plan.Why)
	}
	if d.Operation != nil {
		attrs = append(attrs, "op", d.Operation.ID)
	}
	if d.Step != nil {
		attrs = append(attrs, "step", d.Step.Step, "act", d.Step.String())
	}
	for _, r := range d.Refusals {
		attrs = append(attrs, slog.Group(string(r.Code), "subject", r.Subject, "detail", r.Detail))
	}
	l.Log.Info("decision changed", attrs...)
	if l.Recorder == nil {
		return
	}
	if err := l.Recorder.Keep(in, d); err != nil {
		// The decision stands without its record; the owner has to know that the
		// records have a hole.
		l.Metrics.recordFailures.Inc()
		l.Log.Error("inputs of the decision not kept", "err", err)
	}
}
