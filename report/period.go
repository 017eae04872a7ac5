package report

import (
	"slices"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Columns is how many parts a period has in charts.
const Columns = 240

// Period takes in moments in the order of their times and keeps what they come
// to. It is for one goroutine.
type Period struct {
	from, to time.Time
	last     *membership.Moment // the newest one up to the end, nil before the first
	known    time.Time          // up to here all is counted, known or not
	joined   bool               // what is known reaches up to known without a gap
	late     *membership.Moment // the next one after this came too late, behind the period

	moments, disordered, changes int
	recorded, unknown            time.Duration
	gaps                         []Gap
	gapCount                     int

	kinds      [Columns]kindColumn
	spoken     spans[membership.Kind]
	modes      spans[string]
	plans      spans[Move]
	operations spans[Operated]
	refusals   spans[Refused]
	asked      spans[bool]
	tolerance  spans[int]
	leaders    spans[string]
	hosts      hosts
	series     series
	effect     effect
}

// New is an empty period. to is after from.
func New(from, to time.Time) *Period {
	return &Period{from: from, to: to, known: from, series: newSeries(), hosts: hosts{of: map[string]*hostSum{}}}
}

// Add takes in the next moment and keeps it for a while. One from before the last is left out and counted.
// Those from before the period and from behind it are needed too: what they say
// reaches into it, or ends in it.
func (p *Period) Add(m *membership.Moment) {
	if p.last != nil && m.At.Before(p.last.At) {
		p.disordered++
		return
	}
	if m.At.After(p.to) {
		// It is not remembered: where a clock was wrong for a moment, what comes
		// after it lies in the period again.
		if p.last != nil && m.At.Sub(p.last.At) <= p.last.Next.Std() {
			p.between(p.last, m)
		} else {
			p.late = p.last
		}
		return
	}
	if p.last != nil {
		p.between(p.last, m)
	}
	if !m.At.Before(p.from) {
		p.moments++
		p.changes += m.Changes
	}
	p.last = m
}

// between counts the time from one moment to the next: as the first one said, or
// as unknown where the next one came too late.
func (p *Period) between(m, next *membership.Moment) {
	from, to := p.clip(m.At), p.clip(next.At)
	p.gap(from)
	if p.known.After(from) {
		from = p.known
	}
	if next.At.Sub(m.At) > m.Next.Std() {
		p.gap(to)
		return
	}
	p.count(m, next, from, to)
}

func (p *Period) clip(t time.Time) time.Time {
	switch {
	case t.Before(p.from):
		return p.from
	case t.After(p.to):
		return p.to
	}
	return t
}

// maxGaps bounds the gaps that are told one by one; the longest are.
const maxGaps = 20

// gap counts all up to a time as unknown.
func (p *Period) gap(to time.Time) {
	if !to.After(p.known) {
		return
	}
	g := Gap{From: p.known, To: to, Seconds: to.Sub(p.known).Seconds()}
	// A gap that goes on is one gap, whatever lies in it.
	if n := len(p.gaps); !p.joined && n > 0 && p.gaps[n-1].To.Equal(p.known) {
		p.gaps[n-1].To, p.gaps[n-1].Seconds = to, to.Sub(p.gaps[n-1].From).Seconds()
	} else {
		p.gapCount++
		if len(p.gaps) > maxGaps { // the shortest goes, never the newest: it may go on
			at := 0
			for i, o := range p.gaps[:len(p.gaps)-1] {
				if o.Seconds < p.gaps[at].Seconds {
					at = i
				}
			}
			p.gaps = slices.Delete(p.gaps, at, at+1)
		}
		p.gaps = append(p.gaps, g)
	}
	p.unknown += to.Sub(p.known)
	p.columns(p.known, to, func(c int, d time.Duration) { p.kinds[c].unknown += d })
	p.known, p.joined = to, false
}

// count takes what a moment said as so from one time to another.
func (p *Period) count(m, next *membership.Moment, from, to time.Time) {
	if !to.After(from) {
		return
	}
	after, d := p.joined, to.Sub(from)
	p.recorded += d
	p.known, p.joined = to, true
	p.spoken.hold([]membership.Kind{m.Kind}, from, to, after)
	p.modes.hold([]string{m.Mode}, from, to, after)
	p.tolerance.hold([]int{m.Tolerance}, from, to, after)
	p.leaders.hold([]string{m.Leader}, from, to, after)
	p.plans.hold(moves(m), from, to, after)
	p.operations.hold(operated(m), from, to, after)
	var refused []Refused
	owner := []bool(nil)
	for _, r := range m.Refusals {
		refused = append(refused, Refused{r.Code, r.Kind, r.Subject})
		if r.Kind == membership.Owner {
			owner = []bool{true}
		}
	}
	p.refusals.hold(refused, from, to, after)
	p.asked.hold(owner, from, to, after)
	p.columns(from, to, func(c int, d time.Duration) { p.kinds[c].add(m, owner != nil, d) })
	p.hosts.hold(p, m, from, to, after)
	p.series.hold(p, m, next, from, to)
	p.effect.hold(m, from, to, after)
}

func moves(m *membership.Moment) []Move {
	if m.Kind != membership.Planned {
		return nil
	}
	return []Move{{m.Out, m.In, m.Regrade, m.To}}
}

func operated(m *membership.Moment) []Operated {
	if m.Operation == "" {
		return nil
	}
	return []Operated{{m.Operation, m.Out, m.In, m.Regrade, m.To}}
}

// columns visits the columns that some time lies in, with its part in each.
func (p *Period) columns(from, to time.Time, visit func(c int, d time.Duration)) {
	whole := p.to.Sub(p.from)
	edge := func(c int) time.Duration { return time.Duration(float64(whole) * float64(c) / Columns) }
	a, b := from.Sub(p.from), to.Sub(p.from)
	first := min(max(int(float64(a)/float64(whole)*Columns)-1, 0), Columns-1)
	for c := first; c < Columns && edge(c) < b; c++ {
		end := edge(c + 1)
		if c == Columns-1 {
			end = whole
		}
		if d := min(b, end) - max(a, edge(c)); d > 0 {
			visit(c, d)
		}
	}
}

// close counts what is left of the period.
func (p *Period) close() {
	if l := p.last; l != nil && l != p.late && p.to.Sub(l.At) <= l.Next.Std() {
		p.gap(p.clip(l.At))
		p.count(l, l, p.known, p.to)
	}
	p.gap(p.to)
}

// kindColumn is how much of a column's time which kind of decision took.
type kindColumn struct{ steady, plan, step, hold, owner, unknown time.Duration }

func (k *kindColumn) add(m *membership.Moment, owner bool, d time.Duration) {
	switch {
	case m.Kind == membership.Steady:
		k.steady += d
	case m.Kind == membership.Planned:
		k.plan += d
	case m.Kind == membership.StepNext:
		k.step += d
	case owner:
		k.owner += d
	default:
		k.hold += d
	}
}

// statuses are the places of a verdict's statuses in sums.
var statuses = [...]fitness.Status{fitness.Fit, fitness.Marginal, fitness.Unfit, fitness.StatusUnknown}
