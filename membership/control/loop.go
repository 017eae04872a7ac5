package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

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
	Metrics  *Metrics
	Log      *slog.Logger

	leads atomic.Bool
	last  atomic.Pointer[State]
}

// State is the newest round.
type State struct {
	Inputs   membership.Inputs
	Decision membership.Decision
	Took     time.Duration
}

// Leading reports whether Run is at work.
func (l *Loop) Leading() bool { return l.leads.Load() }

// Last is the newest round, nil before the first has ended.
func (l *Loop) Last() *State { return l.last.Load() }

// Run decides until the context ends. It leaves nothing behind.
func (l *Loop) Run(ctx context.Context) error {
	l.leads.Store(true)
	defer func() {
		l.leads.Store(false)
		l.last.Store(nil)
	}()
	tick := time.NewTicker(l.Round)
	defer tick.Stop()
	for key := ""; ; {
		began := time.Now()
		in, err := l.Gatherer.Gather(ctx)
		if err != nil {
			return fmt.Errorf("control: round ended: %w", err)
		}
		d := membership.Decide(in)
		if err := l.Gatherer.Remember(ctx, d); err != nil && ctx.Err() == nil {
			l.Log.Warn("ages of the decision not written down", "err", err)
		}
		took := time.Since(began)
		l.last.Store(&State{in, d, took})
		l.Metrics.count(d, took)
		if k := d.Key(); k != key {
			key = k
			l.Metrics.changes.Inc()
			l.changed(in, d)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// changed reports a decision that says something else than the one before.
func (l *Loop) changed(in membership.Inputs, d membership.Decision) {
	attrs := []any{"kind", string(d.Kind), "mode", d.Mode, "voters", d.Voters, "fit_voters", d.FitVoters, "tolerance", d.Tolerance}
	if d.Plan != nil {
		attrs = append(attrs, "out", d.Plan.Out, "in", d.Plan.In, "why", d.Plan.Why)
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
