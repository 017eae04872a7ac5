package lease_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/lease"
	"suffrage/lease/leasetest"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run the simulation with this seed only")
	simSeeds = flag.Uint64("sim.seeds", 40, "how many seeds the simulation runs")
)

// TestSimulation lets three hosts contend for twenty minutes of bubble time, on
// a network that loses, delays and repeats nothing but may deliver long after
// the sender gave up, while hosts freeze, suspend, crash and have their clocks
// set. It holds that
//   - whoever passes Check has the record at that instant, and nobody with a
//     lower Term passes after it;
//   - the Term grows with every change of holder, deletions by hand included;
//   - no journal is lost: it only goes on, also past lost replies (not past a
//     deletion, which takes it along).
//
// Goroutines of one instant run in any order, so a seed is likely to fail again,
// not certain to.
func TestSimulation(t *testing.T) {
	first, last := uint64(1), *simSeeds
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	var sum world
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), deletes: seed%3 == 0}
				w.run()
				sum.takes, sum.passes, sum.losses = sum.takes+w.takes, sum.passes+w.passes, sum.losses+w.losses
			})
		})
	}
	t.Logf("%d takes, %d passed checks, %d losses", sum.takes, sum.passes, sum.losses)
	if last-first > 20 && (sum.takes < 100 || sum.passes < 1000 || sum.losses < 100) {
		t.Error("the simulation hardly does anything")
	}
}

type world struct {
	t       *testing.T
	seed    uint64
	deletes bool
	m       leasetest.Memory

	mu                    sync.Mutex
	rng                   *rand.Rand
	highest, passed       lease.Term
	acked                 int // the journal that was last acknowledged
	deleted               int // how often the record was
	takes, passes, losses int
}

func (w *world) fail(format string, args ...any) {
	w.t.Errorf("seed %d: at %v: "+format, append([]any{w.seed, time.Now().Format("04:05.000")}, args...)...)
}

// n is a random number below n, chance a random event.
func (w *world) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}
func (w *world) chance(percent int) bool        { return w.n(100) < percent }
func (w *world) ms(most int) time.Duration      { return time.Duration(w.n(most)) * time.Millisecond }
func (w *world) sleep(most int)                 { time.Sleep(w.ms(most)) }
func number(journal []byte) int                 { n, _ := strconv.Atoi(string(journal)); return n }
func (w *world) alive(ctx context.Context) bool { return ctx.Err() == nil }

func (w *world) run() {
	w.m.Wrote = w.wrote
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 3 {
		h := &host{w: w, name: fmt.Sprintf("h%d", i+1)}
		h.clock.SetWall(time.Duration(i-1) * 10 * time.Minute)
		wg.Go(func() { h.contend(ctx) })
		wg.Go(func() { h.trouble(ctx) })
	}
	for w.deletes && w.alive(ctx) {
		time.Sleep(time.Minute + w.ms(200_000))
		w.m.Delete()
		w.mu.Lock()
		w.acked, w.deleted = 0, w.deleted+1
		w.mu.Unlock()
	}
	wg.Wait()
	w.m.Wait()
}

func (w *world) wrote(old, now lease.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Holder != old.Holder && now.Holder != (lease.Holder{}) && now.Term <= w.highest {
		w.fail("%s took term %d after %d", now.Holder, now.Term, w.highest)
	}
	if now.Term < w.highest {
		w.fail("term fell from %d to %d", w.highest, now.Term)
	}
	w.highest = now.Term
	if n := number(now.Journal); old.Term != 0 && n != number(old.Journal) && n != number(old.Journal)+1 {
		w.fail("journal went from %s to %s", old.Journal, now.Journal)
	}
}

// host is one machine, on which processes run one after the other.
type host struct {
	w     *world
	name  string
	clock leasetest.Clock
	thaw  atomic.Int64 // frozen until then, in ns
	dead  atomic.Bool  // the process crashed: nothing of it gets out
}

// gate is where a frozen host stands still: before each read of a clock, before
// and after each call.
func (h *host) gate() {
	for {
		d := h.thaw.Load() - time.Now().UnixNano()
		if d <= 0 {
			return
		}
		time.Sleep(time.Duration(d))
	}
}

func (h *host) now() lease.Instant {
	h.gate()
	return h.clock.Now()
}

func (h *host) freeze(d time.Duration, suspend bool) {
	h.gate()
	h.thaw.Store(time.Now().Add(d).UnixNano())
	if suspend {
		h.clock.Suspended(d)
	}
}

func (h *host) fault(op string) (f leasetest.Fault) {
	w := h.w
	f.Before, f.After = w.ms(50), w.ms(50)
	switch c := w.n(100); {
	case h.dead.Load() || c < 3:
		f.LoseRequest = true
	case c < 6:
		f.LoseReply = true
	case c < 9:
		f.Conflict = true
	case c < 12:
		f.Before = w.ms(6000) // at most the time that etcd keeps a request: 7 s
	case c < 14:
		f.After = w.ms(6000)
	}
	return f
}

// trouble comes at any moment, in the middle of calls.
func (h *host) trouble(ctx context.Context) {
	w := h.w
	for w.alive(ctx) {
		w.sleep(90_000)
		switch c := w.n(10); {
		case c < 5:
			h.freeze(w.ms(60_000), w.chance(50))
		case c < 6:
			h.clock.SetWall(w.ms(20_000) - 10*time.Second)
		case c < 7:
			h.dead.Store(true)
		}
	}
}

type gated struct {
	h *host
	s lease.Store
}

func (g gated) Get(ctx context.Context) (lease.Seen, error) {
	g.h.gate()
	defer g.h.gate()
	return g.s.Get(ctx)
}

func (g gated) Put(ctx context.Context, r lease.Record, old lease.Version) (lease.Version, error) {
	g.h.gate()
	defer g.h.gate()
	return g.s.Put(ctx, r, old)
}

func (h *host) contend(ctx context.Context) {
	cfg := short(nil)
	cfg.Clock = h.now
	for h.w.alive(ctx) {
		err := lease.Run(ctx, cfg, gated{h, h.w.m.Client(h.fault)}, lease.NewHolder(h.name), "sim", h.lead)
		if errors.Is(err, lease.ErrLost) {
			h.w.mu.Lock()
			h.w.losses++
			h.w.mu.Unlock()
		}
		h.w.sleep(5000)
		h.dead.Store(false)
	}
}

func (h *host) lead(ctx context.Context, l *lease.Held) error {
	w := h.w
	w.mu.Lock()
	w.takes++
	n := number(l.Journal())
	if n < w.acked {
		w.fail("%s found journal %d; %d was acknowledged", h.name, n, w.acked)
	}
	w.mu.Unlock()
	for w.alive(ctx) && !w.chance(5) {
		w.sleep(4000)
		if err := l.Check(ctx); err != nil {
			continue
		}
		w.mu.Lock()
		w.passes++
		// A record deleted while the reply was on its way is nobody else's yet.
		if now := w.m.Peek(); now.Term != 0 && (now.Term != l.Term() || now.Holder.Host != h.name) || l.Term() < w.passed {
			w.fail("%s passed Check with term %d; the record has term %d of %s, term %d passed before", h.name, l.Term(), now.Term, now.Holder, w.passed)
		}
		w.passed = l.Term()
		deleted := w.deleted
		w.mu.Unlock()
		n = number(l.Journal()) // one of unknown outcome is settled by Check
		if err := l.Write(ctx, []byte(strconv.Itoa(n+1))); err == nil {
			w.mu.Lock()
			if w.deleted == deleted {
				w.acked = max(w.acked, n+1)
			}
			w.mu.Unlock()
		}
	}
	return ctx.Err()
}
