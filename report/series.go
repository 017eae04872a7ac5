package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// maxSeries bounds the pairs and disks that are told apart; others are counted.
const maxSeries = 600

type seriesKey struct {
	signal fitness.Signal
	a, b   string // of a pair in the order of their names
}

func (k seriesKey) compare(o seriesKey) int {
	return cmp.Or(cmp.Compare(k.signal, o.signal), cmp.Compare(k.a, o.a), cmp.Compare(k.b, o.b))
}

type series struct {
	of   map[seriesKey]*seriesSum
	keys map[string]seriesKey // by a moment's key
	left map[seriesKey]bool   // without a place, up to as many again
	// newest are the figures of one moment, folded once for both times that it bounds.
	newest   map[seriesKey]membership.Reach
	newestOf *membership.Moment
}

type seriesSum struct {
	weights
	low, high [Columns]fitness.Figure // seconds; NaN where nothing is known
	over      time.Duration
	limit     fitness.Figure
	worst     fitness.Figure
}

func newSeries() series {
	return series{of: map[seriesKey]*seriesSum{}, keys: map[string]seriesKey{}, left: map[seriesKey]bool{}}
}

// folded are a moment's figures, both directions of a pair as the worse one:
// pairs are judged by that.
func (s *series) folded(m *membership.Moment) map[seriesKey]membership.Reach {
	out := make(map[seriesKey]membership.Reach, len(m.Figures))
	for name, r := range m.Figures {
		k, ok := s.keys[name]
		if !ok {
			part := strings.Split(name, " ")
			if len(part) < 2 || len(part) > 3 {
				continue
			}
			if k = (seriesKey{fitness.Signal(part[0]), part[1], ""}); len(part) == 3 {
				k.a, k.b = min(part[1], part[2]), max(part[1], part[2])
			}
			if len(s.keys) < 4*maxSeries {
				s.keys[name] = k
			}
		}
		was := out[k]
		out[k] = membership.Reach{max(was[0], r[0]), max(was[1], r[1])}
	}
	return out
}

// hold counts that the figures of m were so up to the next moment, which knows
// the worst of the time between.
func (s *series) hold(p *Period, m, next *membership.Moment, from, to time.Time) {
	now := s.newest
	if m != s.newestOf {
		now = s.folded(m)
	}
	then := now
	if next != m {
		then = s.folded(next)
	}
	s.newest, s.newestOf = then, next
	for k, r := range now {
		sum := s.place(k)
		if sum == nil {
			continue
		}
		low, high := r[0], r[0]
		if t, known := then[k]; known {
			low, high = min(low, t[0]), max(high, t[1])
		}
		d := to.Sub(from)
		sum.add(r[0], d)
		sum.limit, sum.worst = m.Limits.For(k.signal, 0).Voter, max(sum.worst, high)
		if r[0] > sum.limit || k.signal != fitness.RTT && r[0] >= sum.limit {
			sum.over += d
		}
		p.columns(from, to, func(c int, _ time.Duration) {
			if math.IsNaN(float64(sum.low[c])) {
				sum.low[c], sum.high[c] = low, high
			}
			sum.low[c], sum.high[c] = min(sum.low[c], low), max(sum.high[c], high)
		})
	}
}

func (s *series) place(k seriesKey) *seriesSum {
	sum := s.of[k]
	switch {
	case sum != nil:
	case len(s.of) < maxSeries:
		sum = &seriesSum{}
		for c := range sum.low {
			sum.low[c], sum.high[c] = fitness.Figure(math.NaN()), fitness.Figure(math.NaN())
		}
		s.of[k] = sum
	case len(s.left) < maxSeries:
		s.left[k] = true
	}
	return sum
}

// worstFirst are the series: those over their limit longest first, then those
// that came nearest to it.
func (s *series) worstFirst() []seriesKey {
	near := func(k seriesKey) fitness.Figure { return s.of[k].worst / max(s.of[k].limit, smallest) }
	return slices.SortedFunc(maps.Keys(s.of), func(a, b seriesKey) int {
		return cmp.Or(cmp.Compare(s.of[b].over, s.of[a].over), cmp.Compare(near(b), near(a)), a.compare(b))
	})
}
