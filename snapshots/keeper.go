package snapshots

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// glance is the longest wait between two looks at the clock: timers stand
	// still while a machine sleeps, and clocks are set.
	glance = time.Minute
	// A save that did not work is tried again, tries times in all.
	retryAfter = 5 * time.Minute
	tries      = 3
)

// Keeper saves at the times of a schedule.
type Keeper struct {
	Host     string // whose part of the jitter it has
	Schedule Schedule
	// Save takes one snapshot; usually Routine.Run.
	Save func(context.Context) error
	Log  *slog.Logger

	mu     sync.Mutex
	next   time.Time
	saving bool
}

// State is when the next snapshot begins, tries after a failure counted in, or
// the one that is being saved began. It is zero where there is none.
func (k *Keeper) State() (next time.Time, saving bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.next, k.saving
}

func (k *Keeper) tell(next time.Time, saving bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next, k.saving = next, saving
}

// Run saves at the times of the schedule until ctx ends, and gives ctx's error.
// A save that does not work is logged and tried twice more, 5 minutes apart;
// what it left undone shows in the metrics. A host without a vote saves nothing.
func (k *Keeper) Run(ctx context.Context) error {
	failed := 0
	for next := k.Schedule.Next(k.Host, time.Now()); ; {
		k.tell(next, false)
		if err := sleepUntil(ctx, next); err != nil {
			return err
		}
		// A clock that was set back makes an earlier time the next one.
		if now := time.Now(); now.Before(next) {
			if t := k.Schedule.Next(k.Host, now); t.Before(next) && failed == 0 {
				next = t
			}
			continue
		}
		k.tell(next, true)
		err := k.Save(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		next = k.Schedule.Next(k.Host, time.Now())
		if err == nil || errors.Is(err, ErrNoVote) {
			failed = 0
			continue
		}
		failed++
		again := time.Now().Add(retryAfter)
		if failed < tries && again.Before(next) {
			next = again
		} else {
			failed = 0
		}
		k.Log.Error("snapshot not saved", "host", k.Host, "err", err, "next", next)
	}
}

// sleepUntil waits for a time, at most one glance; for ever where it is zero.
func sleepUntil(ctx context.Context, t time.Time) error {
	var c <-chan time.Time
	if !t.IsZero() {
		timer := time.NewTimer(min(max(0, time.Until(t)), glance))
		defer timer.Stop()
		c = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c:
		return nil
	}
}

// Routine is one scheduled snapshot of a voter: save, then prune.
type Routine struct {
	Dir  string
	Keep int
	// Source finds the voter of this host; ErrNoVote where it has none.
	Source func(context.Context) (Source, error)
	// Held names the snapshots that must stay. While it cannot tell, none is
	// removed. Nil: none is held.
	Held    func(context.Context) ([]string, error)
	Metrics *Metrics // nil: none
	Log     *slog.Logger
}

// Run saves and prunes once.
func (r Routine) Run(ctx context.Context) error {
	src, err := r.Source(ctx)
	if errors.Is(err, ErrNoVote) {
		return err
	}
	var s Saved
	if err == nil {
		s, err = Save(ctx, src, r.Dir, nil)
	}
	r.Metrics.saved(s, err)
	if err != nil {
		return err
	}
	r.Log.Info("snapshot saved", "host", s.Host, "member", s.Member, "rev", s.Revision, "path", s.Path, "bytes", s.Size, "ms", s.Took)
	var held []string
	if r.Held != nil {
		if held, err = r.Held(ctx); err != nil {
			r.Log.Warn("no snapshot pruned: what operations hold is not known", "host", s.Host, "err", err)
			return nil
		}
	}
	removed, err := Prune(r.Dir, r.Keep, held)
	for _, f := range removed {
		r.Log.Info("snapshot pruned", "host", s.Host, "path", f.Path)
	}
	if err != nil {
		r.Log.Warn("snapshots not pruned", "host", s.Host, "err", err)
	}
	return nil
}
