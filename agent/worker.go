package agent

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// runTimeout bounds a probe's run where the probe can be told to stop. For one
// that cannot (a disk), it is when the report begins to call it broken.
const runTimeout = 5 * time.Second

// worker runs one probe in a goroutine of its own, one run at a time: a disk
// that hangs must not hang the agent.
type worker struct {
	probe *probe
	run   func(ctx context.Context, late time.Duration) error
	// hung is told of a run that goes on at a further tick, and may be nil.
	hung func(sofar, late time.Duration)
	// patience is how long a run may take before that is told.
	patience time.Duration

	ask   chan time.Duration
	begun atomic.Int64 // nanoseconds since start of the run under way; 0 is none
	start time.Time
}

func newWorker(p *probe, run func(context.Context, time.Duration) error) *worker {
	// A second back, so that no run begins at 0.
	return &worker{probe: p, run: run, patience: runTimeout, ask: make(chan time.Duration, 1), start: time.Now().Add(-time.Second)}
}

// tick asks for a run, or tells of the one that still goes on. It never blocks.
// Only the schedule calls it.
func (w *worker) tick(late time.Duration) (hangs bool, sofar time.Duration) {
	now := time.Since(w.start)
	if w.begun.CompareAndSwap(0, int64(now)) {
		w.ask <- late
		return false, 0
	}
	begun := time.Duration(w.begun.Load())
	if begun == 0 {
		return false, 0 // it ended just now
	}
	if sofar = now - begun; sofar < w.patience {
		return false, sofar
	}
	if w.hung != nil {
		w.hung(sofar, late)
	}
	return true, sofar
}

// loop runs the probe when asked, until the context ends.
func (w *worker) loop(ctx context.Context, ended func(took time.Duration, err error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case late := <-w.ask:
			runCtx, cancel := context.WithTimeout(ctx, runTimeout)
			begun := time.Now()
			err := w.run(runCtx, late)
			cancel()
			took := time.Since(begun)
			w.begun.Store(0)
			if ctx.Err() == nil {
				ended(took, err)
			}
		}
	}
}

// hangs is what the report says of a run that goes on.
func hangs(sofar time.Duration) string {
	return fmt.Sprintf("the run under way has not ended for %v: see the kernel's log for the disk or daemon that does not answer", sofar.Round(100*time.Millisecond))
}
