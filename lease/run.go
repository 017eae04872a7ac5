package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Run waits for the Lease, takes it and calls lead once. lead's context ends
// when ctx does or when the Lease is lost; lead then returns without any further
// change, and Run waits for it. Run gives:
//
//   - lead's error, once the Lease is released, or could not be and runs out;
//   - a LostError, joined with lead's, when it was lost: end the process;
//   - a HeldError when ctx ended and somebody was last seen to hold it;
//   - another error of ctx, and of the store, when nobody was;
//   - ErrUnreadable when a person must look at the record first.
//
// While waiting, an unreachable store is tried again until ctx ends.
func Run(ctx context.Context, cfg Config, store Store, holder Holder, purpose string, lead func(context.Context, *Held) error) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	if cfg.Clock == nil {
		cfg.Clock = SystemClock
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &contender{cfg: cfg, store: bounded{store, cfg.Renew.Std()}, me: holder, purpose: purpose}
	first := taken(Seen{}, holder, cfg.Duration, purpose, cfg.Clock().Wall)
	if err := first.Validate(); err != nil || holder == (Holder{}) {
		return errors.Join(errors.New("lease: holder needs a host and an instance, at most 256 bytes each, and so the purpose"), err)
	}
	h, err := c.take(ctx)
	if err != nil {
		return err
	}
	cfg.Log.Info("lease taken", "host", holder.Host, "term", h.Term(), "op", purpose)
	return h.run(ctx, lead)
}

func (h *Held) run(ctx context.Context, lead func(context.Context, *Held) error) error {
	var wg sync.WaitGroup
	wg.Go(h.watch)
	wg.Go(h.keep)
	err := lead(h.ctx, h)
	h.cancel(context.Canceled)
	wg.Wait()
	if lost := h.ended(); lost != nil {
		if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
			return lost
		}
		return errors.Join(lost, err)
	}
	if e := h.release(ctx); e != nil {
		h.cfg.Log.Warn("lease not released, it runs out by itself", "host", h.me.Host, "term", h.term, "error", e)
	}
	return err
}

// bounded gives each call its own time.
type bounded struct {
	Store
	most time.Duration
}

func (b bounded) Get(ctx context.Context) (Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.Store.Get(ctx)
}

func (b bounded) Put(ctx context.Context, r Record, old Version) (Version, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.Store.Put(ctx, r, old)
}
