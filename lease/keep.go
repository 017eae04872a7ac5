package lease

import (
	"context"
	"fmt"
	"time"
)

// judge says by our own clocks whether the Lease is still ours, and for how long
// without a renewal. It loses the Lease if not.
func (h *Held) judge() (now Instant, left time.Duration, err error) {
	now = h.cfg.Clock()
	h.mu.Lock()
	sent, lost, last := h.sent, h.lost, h.last
	h.mu.Unlock()
	age, jump := now.since(sent)
	switch stop := h.cfg.Stop(); {
	case lost != nil:
		return now, 0, lost
	case jump > maxJump:
		return now, 0, h.lose(fmt.Sprintf("the clocks disagree by %v on the time since the last renewal: the host slept, or its clock was set", jump), nil)
	case age >= stop && last != nil:
		return now, 0, h.lose(fmt.Sprintf("not renewed for %v, at most %v: %v", age, stop, last), nil)
	case age >= stop:
		return now, 0, h.lose(fmt.Sprintf("not renewed for %v, at most %v: the store did not answer, or the process was frozen", age, stop), nil)
	default:
		return now, stop - age, nil
	}
}

// lose ends the Lease for this process, once; the first reason stays.
func (h *Held) lose(reason string, found *Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = &LostError{Holder: h.me, Term: h.term, Reason: reason, Found: found}
		h.cancel(h.lost)
	}
	return h.lost
}

// ended is the LostError, or nil while there is none.
func (h *Held) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		return nil
	}
	return h.lost
}

// or is err, unless the Lease was lost, which explains it better.
func (h *Held) or(err error) error {
	if lost := h.ended(); lost != nil {
		return lost
	}
	return err
}

// maxLook is the longest time between two looks at the clocks. Go's timers stand
// still in a suspend, so that a single timer would be late by as much.
const maxLook = time.Second

// watch ends the Lease in time, whatever the store does.
func (h *Held) watch() {
	for {
		_, left, err := h.judge()
		if err != nil {
			return
		}
		select {
		case <-h.ctx.Done():
			return
		case <-time.After(min(left, maxLook)):
		}
	}
}

// keep renews until the Lease ends.
func (h *Held) keep() {
	wait := h.cfg.Renew.Std()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = h.cfg.Renew.Std()
		if err := h.change(h.ctx, Record.renewed); err != nil {
			wait = h.cfg.pause()
			h.mu.Lock()
			h.last = err
			h.mu.Unlock()
		}
	}
}

// release leaves the record to the next one, with its Term and its journal. lead
// has returned by now, so ctx may have ended.
func (h *Held) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*h.cfg.Renew.Std())
	defer cancel()
	if err := h.put(ctx, func(r Record) Record { return r.released(h.cfg.Clock().Wall) }); err != nil {
		return fmt.Errorf("lease: release: %w", err)
	}
	return nil
}
