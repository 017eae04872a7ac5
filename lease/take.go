package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"suffrage/fitness"
)

// contender waits for the Lease.
type contender struct {
	cfg     Config
	store   Store
	me      Holder
	purpose string

	seen  Seen
	since Instant // when seen.Version was first seen; an Instant of ours
	// tried is the last attempt to take it, sent at sent, whose reply may be lost.
	tried Record
	last  error // of the store
}

func (c *contender) take(ctx context.Context) (*Held, error) {
	for {
		h, wait, err := c.round(ctx)
		if h != nil || err != nil {
			return h, err
		}
		select {
		case <-ctx.Done():
			return nil, c.gaveUp(context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// round looks once and takes the Lease if it may. Without a Held it says when
// to look again. An error is one that waiting does not mend.
func (c *contender) round(ctx context.Context) (*Held, time.Duration, error) {
	seen, err := c.store.Get(ctx)
	if errors.Is(err, ErrUnreadable) {
		return nil, 0, err
	}
	if err != nil {
		c.failed(ctx, "read", err)
		return nil, c.cfg.pause(), nil
	}
	now := c.cfg.Clock()
	c.note(seen, now)
	next, wait := c.next(now)
	if wait > 0 {
		return nil, wait, nil
	}
	c.tried = next
	version, err := c.store.Put(ctx, next, seen.Version)
	if err != nil {
		if !errors.Is(err, ErrConflict) {
			c.failed(ctx, "write", err)
		}
		return nil, c.cfg.pause(), nil
	}
	h := hold(ctx, c, Seen{Record: next, Version: version}, now)
	if _, _, err := h.judge(); err != nil {
		// The reply came so late that another may have it by now: look again.
		return nil, c.cfg.pause(), nil
	}
	return h, 0, nil
}

func (c *contender) note(seen Seen, now Instant) {
	c.last = nil
	old := c.seen
	if seen.Version != old.Version || c.since == (Instant{}) {
		c.since = now
	}
	c.seen = seen
	if h := seen.Record.Holder; h != old.Record.Holder && h != (Holder{}) {
		c.cfg.Log.Info("waiting for the lease", "host", h.Host, "term", seen.Record.Term, "op", seen.Record.Purpose)
	}
}

// next is what to write now to hold the Lease, or how long to wait.
func (c *contender) next(now Instant) (Record, time.Duration) {
	r := c.seen.Record
	switch {
	case c.tried.Term != 0 && r.Equal(c.tried):
		// Our own, whose reply was lost. It may be old: it counts from a renewal.
		return r.renewed(), 0
	case r.Holder == Holder{} && c.seen.Version != "":
		return taken(c.seen, c.me, c.cfg.Duration, c.purpose, now.Wall), 0
	}
	// No record may be a held one that somebody deleted: its holder has the same
	// time to notice. A duration that was edited below ours makes nobody hasty.
	left := max(r.Duration, c.cfg.Duration).Std() - now.atLeast(c.since)
	if left > 0 {
		return Record{}, min(left, c.cfg.Renew.Std())
	}
	return taken(c.seen, c.me, c.cfg.Duration, c.purpose, now.Wall), 0
}

func (c *contender) failed(ctx context.Context, op string, err error) {
	if ctx.Err() != nil {
		return // that is why
	}
	if c.last == nil {
		c.cfg.Log.Warn("cannot reach the lease, trying on", "op", op, "error", err)
	}
	c.last = err
}

func (c *contender) gaveUp(why error) error {
	if c.last != nil {
		why = errors.Join(why, c.last)
	}
	if c.seen.Record.Holder != (Holder{}) {
		return &HeldError{Record: c.seen.Record, Err: why}
	}
	if c.since != (Instant{}) {
		why = fmt.Errorf("there is no record, which is free once it was missing for %v: %w", c.cfg.Duration, why)
	}
	return fmt.Errorf("lease: wait for it: %w", why)
}

// Create makes a record that nobody holds, if there is none, so that the first
// holder need not wait. It is for a new cluster only: elsewhere a missing record
// may be one that was deleted under its holder.
func Create(ctx context.Context, store Store, d fitness.Duration) error {
	seen, err := store.Get(ctx)
	if err != nil || seen.Version != "" {
		return err
	}
	if _, err = store.Put(ctx, taken(seen, Holder{}, d, "", time.Now()), ""); errors.Is(err, ErrConflict) {
		return nil // somebody else did
	}
	return err
}

// pause is the time between two attempts that failed.
func (c Config) pause() time.Duration { return c.Renew.Std() / 4 }
