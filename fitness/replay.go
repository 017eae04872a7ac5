package fitness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// replay is the state of one Read. Times are microseconds since 1970.
type replay struct {
	signal Signal
	limit  Limit
	bounds []Bound
	after  int64 // samples up to here are left out; 0 is none
	stale  int64 // the longest time without any sample that is no silence
	window int64 // the longest time without a sample that counts
	now    int64

	tally   tally
	seen    int64 // the newest sample, whether it counts or not; 0 is none
	last    int64 // the newest sample that counts; 0 is none
	lostNow int

	bound   int   // the newest bound read by then, -1 is none
	used    int   // the bound that decided last
	overdue int64 // the age from which a bound should have been followed by another

	band    Band
	held    int
	pending int // evaluations that the next read of the histogram may yet confirm
	since   int64
	by      string
}

func newReplay(s Series, c Context) replay {
	stale := c.staleAfter().Microseconds()
	p := replay{
		signal: s.Signal,
		limit:  c.Limit,
		now:    c.Now.UnixMicro(),
		stale:  stale,
		window: max(stale, WindowSize*c.Period.Microseconds()),
		bound:  -1,
		used:   -1,
	}
	p.overdue = stale + BoundEvery*c.Period.Microseconds()
	if !c.NotBefore.IsZero() {
		p.after = max(0, c.NotBefore.UnixMicro())
	}
	if s.Signal.ofDisk() {
		// Of two from one moment, the one that saw less: which came first must not
		// choose between them.
		p.bounds = inOrder(s.Bounds, func(b *Bound) int64 { return b.At }, func(a, b *Bound) int {
			return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi))
		})
	}
	return p
}

// newest gives the newest SeriesSize samples, oldest first and each once.
func newest(samples []Sample) []Sample {
	samples = inOrder(samples, func(s *Sample) uint64 { return s.Seq }, func(a, b *Sample) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.State, b.State), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Late, b.Late))
	})
	return samples[max(0, len(samples)-SeriesSize):]
}

// inOrder returns list itself where it is strictly in order of its keys, which
// it is when it comes from an agent that works, and else a sorted copy with one
// of each key: the first by ties.
func inOrder[T any, K cmp.Ordered](list []T, key func(*T) K, ties func(a, b *T) int) []T {
	for i := 1; i < len(list); i++ {
		if key(&list[i-1]) >= key(&list[i]) {
			list = slices.Clone(list)
			slices.SortFunc(list, func(a, b T) int { return cmp.Or(cmp.Compare(key(&a), key(&b)), ties(&a, &b)) })
			return slices.CompactFunc(list, func(a, b T) bool { return key(&a) == key(&b) })
		}
	}
	return list
}

// end is the last microsecond that JSON has a date for. Times that cannot be
// written would make a whole inputs file unwritable, for one agent that lies.
const end = 253402300799_999_999

// take lets one sample in and evaluates the window that it completes.
func (p *replay) take(m Sample) {
	if m.At <= p.after || m.At > end {
		return
	}
	// A measurement that took longer than three periods is no silence: it is
	// the slowest disks that would never be judged if it were, and a host that
	// has just gone would be unknown until its first ping has timed out.
	began := m.At - p.signal.took(m).Microseconds()
	if p.seen != 0 && (began-p.seen > p.stale || p.seen-m.At > p.stale) {
		p.forget()
	}
	p.seen = m.At
	if p.signal.spoilt(m, p.limit) {
		return
	}
	if p.last != 0 && began-p.last > p.window {
		p.forget()
	}
	p.last = m.At
	v := p.signal.number(m)
	band := Unknown
	if !math.IsNaN(v) {
		band = p.signal.band(Figure(v), p.limit)
	}
	p.tally.add(v, band)
	if m.State == Lost && !math.IsNaN(v) {
		p.lostNow++
	} else {
		p.lostNow = 0
	}
	p.evaluate()
}

// forget drops what was gathered before a silence, or before a clock was set.
func (p *replay) forget() {
	p.tally = tally{}
	p.lostNow, p.bound, p.used, p.pending = 0, -1, -1, 0
	if p.band != Unknown {
		p.band, p.held, p.by, p.since = Unknown, 0, "", p.last
	}
}

func (p *replay) evaluate() {
	band, by, supported := p.decide()
	if band != p.band || p.since == 0 {
		p.band, p.held, p.pending, p.since = band, 0, 0, p.last
	}
	p.by = by
	switch {
	case band == Unknown:
	case !supported:
		p.pending++
	default:
		p.held = min(p.held+p.pending+1, Whole)
		p.pending = 0
	}
}

// decide gives the band and what decided it. It is supported by something new
// when the probe's own window says the same, or when the histogram was read
// since it decided last. What is not supported stands, but counts only once a
// next read confirms it: the first and the last read that show a burst of 99 are
// at most 197 samples apart, so it never holds whole.
func (p *replay) decide() (band Band, by string, supported bool) {
	for p.bound+1 < len(p.bounds) && p.bounds[p.bound+1].At <= p.last {
		p.bound++
	}
	probe := p.tally.band(p.signal.outliers())
	if probe == Unknown {
		return Unknown, "", false
	}
	if b := p.histogram(); b != nil {
		if d, can := b.decide(p.limit); can {
			fresh := p.bound != p.used
			p.used = p.bound
			return d, "histogram", fresh || d == probe
		}
	}
	return probe, "probe", true
}

// histogram is the newest bound, if it is about the window at hand: not overdue,
// and all of it from after NotBefore.
func (p *replay) histogram() *Bound {
	if p.bound < 0 {
		return nil
	}
	b := &p.bounds[p.bound]
	if p.last-b.At > p.overdue || (p.after != 0 && b.At-p.after < p.window) {
		return nil
	}
	return b
}

func (p *replay) reading(s Series, c Context) Reading {
	w := p.tally.window()
	r := Reading{Signal: s.Signal, Host: c.Host, Peer: s.Peer, Limit: c.Limit,
		Band: p.band, Held: p.held, DecidedBy: p.by,
		Count: w.Count(), Lost: w.Lost(), LostNow: p.lostNow, P50: w.P50()}
	if w.Full() {
		r.Figure = p.signal.figure(&w)
	}
	if b := p.histogram(); b != nil {
		said := *b
		r.Histogram = &said
		if p.by == "histogram" && w.Full() && s.Signal.band(r.Figure, c.Limit) != p.band {
			probe := r.Figure
			r.Probe, r.Figure = &probe, b.edge(p.band)
		}
	}
	if p.last != 0 {
		r.Newest = time.UnixMicro(p.last).UTC()
	}
	if p.band != Unknown && p.old(p.last) {
		p.band, p.since = Unknown, p.last
	}
	if p.band == Unknown {
		r.Band, r.Held, r.DecidedBy, r.Note = Unknown, 0, "", p.note(s, c, &w)
	} else if p.lostNow > 0 {
		r.Note = s.Error
	}
	r.Since = c.Now.UTC()
	if p.since != 0 {
		r.Since = time.UnixMicro(p.since).UTC()
	}
	return r
}

// old reports whether a time is too long ago to judge by, or as far in the
// future, where only a clock that was set can have put it.
func (p *replay) old(at int64) bool { return p.now-at > p.stale || at-p.now > p.stale }

// note says why the band is unknown.
func (p *replay) note(s Series, c Context, w *Window) string {
	switch {
	case s.Error != "" && !w.Full():
		return ProbeFails + s.Error
	case p.old(p.last) && !p.old(p.seen):
		return "the agent on " + c.Host + " runs late, what it measures meanwhile weighs nothing"
	case p.last == 0:
		return "no sample counts yet"
	case p.last-p.now > p.stale:
		return "the clock of " + c.Host + " was set: its newest sample is in the future"
	case p.old(p.last):
		return fmt.Sprintf("newest sample is older than %s", c.staleAfter())
	case w.Failed() > 0:
		return fmt.Sprintf("%d of the last %d samples failed, the window must hold none", w.Failed(), w.Count()+w.Failed())
	}
	return fmt.Sprintf("have %d samples, need %d", w.Count(), WindowSize)
}
