package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Held is a Lease that is held. Its methods may be called from several
// goroutines; calls to the store are made one after the other.
type Held struct {
	cfg   Config
	store Store
	me    Holder
	term  Term

	ctx    context.Context // ends with the Lease
	cancel context.CancelCauseFunc
	turn   chan struct{} // holds one token; who took it may use the store
	write  *write        // belongs to who has the turn: one whose end is not known

	mu   sync.Mutex
	cur  Seen    // what is in the store as far as we know
	sent Instant // when the write that made it was sent
	lost *LostError
	last error // of the last renewal
}

// write is one change of the record on its way.
type write struct {
	record Record
	sent   bool
	first  Instant // when it was first sent
	unsure bool    // it may have been done, or may still be
}

func hold(ctx context.Context, c *contender, s Seen, sent Instant) *Held {
	h := &Held{cfg: c.cfg, store: c.store, me: c.me, term: s.Record.Term, turn: make(chan struct{}, 1), cur: s, sent: sent}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.turn <- struct{}{}
	return h
}

// Term goes with every change that is made under this Lease.
func (h *Held) Term() Term { return h.term }

// Journal is what was last known to be written, at first by an earlier holder.
// After a Write of unknown outcome, Check first.
func (h *Held) Journal() []byte { return bytes.Clone(h.current().Record.Journal) }

// Check is called right before each change. It is nil only if the record in the
// store is still the one that this holder wrote last, if that was renewed less
// than Config.Stop ago, and if the clocks agree since then. A LostError is final;
// after any other error nothing is known and nothing may be changed either.
// Pass the change a context that ends with lead's.
func (h *Held) Check(ctx context.Context) error {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := h.settle(ctx); err != nil {
		return fmt.Errorf("lease: check: %w", err)
	}
	seen, err := h.store.Get(ctx)
	if errors.Is(err, ErrUnreadable) {
		return h.lose(err.Error(), nil)
	}
	if err != nil {
		return h.or(fmt.Errorf("lease: check: %w", err))
	}
	if cur := h.current(); seen.Version != cur.Version || !seen.Record.Equal(cur.Record) {
		return h.lose(instead(cur.Record, seen.Record), &seen.Record)
	}
	_, _, err = h.judge() // the read may have taken long
	return err
}

// Write replaces the journal, only while the Lease is held. On nil it is in the
// store; on a LostError a next holder may find either. With ErrUnknown, after
// ctx ended on the way, the next renewal or Check brings it to an end. With any
// other error the journal is as before.
func (h *Held) Write(ctx context.Context, journal []byte) error {
	if len(journal) > MaxJournal {
		return fmt.Errorf("lease: write journal: %d bytes; at most %d", len(journal), MaxJournal)
	}
	err := h.change(ctx, func(r Record) Record {
		r.Journal = bytes.Clone(journal)
		return r.renewed()
	})
	if err != nil {
		return fmt.Errorf("lease: write journal: %w", err)
	}
	return nil
}

// enter waits for the turn. The context that it gives ends with the Lease too.
func (h *Held) enter(ctx context.Context) (context.Context, func(), error) {
	select {
	case <-h.turn:
	case <-ctx.Done():
		return nil, nil, h.or(fmt.Errorf("lease: %w", context.Cause(ctx)))
	case <-h.ctx.Done():
		return nil, nil, h.or(fmt.Errorf("lease: %w", context.Cause(h.ctx)))
	}
	if _, _, err := h.judge(); err != nil {
		h.turn <- struct{}{}
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	return ctx, func() { stop(); cancel(nil); h.turn <- struct{}{} }, nil
}

// change makes one write of the record.
func (h *Held) change(ctx context.Context, next func(Record) Record) error {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return h.put(ctx, next)
}

func (h *Held) put(ctx context.Context, next func(Record) Record) error {
	if err := h.settle(ctx); err != nil { // one from before
		return err
	}
	h.write = &write{record: next(h.current().Record)}
	return h.settle(ctx)
}

// settle brings the write under way to an end. It leaves one behind only with
// ErrUnknown. The same record is sent against the same version each time, so
// that it is written once at most.
func (h *Held) settle(ctx context.Context) error {
	for h.write != nil {
		done, err := h.attempt(ctx)
		if done {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(h.cfg.pause()):
		}
	}
	return nil
}

func (h *Held) attempt(ctx context.Context) (done bool, err error) {
	w, cur := h.write, h.current()
	now, _, err := h.judge()
	if err != nil {
		return true, err
	}
	if ctx.Err() != nil {
		if !w.unsure {
			h.write = nil
			return true, context.Cause(ctx)
		}
		return true, h.or(errors.Join(ErrUnknown, context.Cause(ctx)))
	}
	if !w.sent {
		w.sent, w.first = true, now
	}
	version, err := h.store.Put(ctx, w.record, cur.Version)
	switch {
	case err == nil:
		h.accept(Seen{Record: w.record, Version: version}, now)
		return true, nil
	case errors.Is(err, ErrUnknown):
		w.unsure = true
	case !errors.Is(err, ErrConflict):
		if w.unsure {
			return true, errors.Join(ErrUnknown, err)
		}
		h.write = nil
		return true, err
	}
	return h.reread(ctx)
}

// reread finds out what became of a write.
func (h *Held) reread(ctx context.Context) (done bool, err error) {
	w, cur := h.write, h.current()
	seen, err := h.store.Get(ctx)
	switch {
	case errors.Is(err, ErrUnreadable):
		return true, h.lose(err.Error(), nil)
	case err != nil || seen.Version == cur.Version:
		return false, nil // not done, or not seen: the same again
	case seen.Record.Equal(w.record):
		h.accept(seen, w.first)
		return true, nil
	}
	return true, h.lose(instead(cur.Record, seen.Record), &seen.Record)
}

func (h *Held) accept(s Seen, sent Instant) {
	h.write = nil
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cur, h.sent, h.last = s, sent, nil
}

func (h *Held) current() Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cur
}
