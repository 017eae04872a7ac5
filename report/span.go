package report

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Span is how often and how long something held.
type Span struct {
	// Times is how often it began. A gap in between begins nothing.
	Times   int     `json:"times"`
	Seconds float64 `json:"seconds"`
	// Longest is the longest time without a break or a gap.
	Longest float64   `json:"longest_seconds"`
	First   time.Time `json:"first,omitzero"`
	Last    time.Time `json:"last,omitzero"`

	total, run, longest time.Duration
}

func (s *Span) hold(from, to time.Time, begins, goesOn bool) {
	d := to.Sub(from)
	if begins {
		s.Times++
	}
	if !goesOn {
		s.run = 0
	}
	if s.First.IsZero() {
		s.First = from
	}
	s.total, s.run, s.Last = s.total+d, s.run+d, to
	s.longest = max(s.longest, s.run)
	s.Seconds, s.Longest = s.total.Seconds(), s.longest.Seconds()
}

// maxSpans bounds the things of one kind that a period tells apart. What comes
// after them is counted in one span for all.
const maxSpans = 500

// spans are the spans of many things of one kind.
type spans[K comparable] struct {
	of   map[K]*Span
	was  map[K]bool // in the known time before
	rest *Span      // of those beyond maxSpans, nil while there are none
}

// hold counts that these things, and no others, held from one time to another.
// after is whether the known time before ended where this begins.
func (s *spans[K]) hold(things []K, from, to time.Time, after bool) {
	if s.of == nil {
		s.of = map[K]*Span{}
	}
	now := make(map[K]bool, len(things))
	for _, k := range things {
		if now[k] {
			continue
		}
		now[k] = true
		span := s.of[k]
		switch {
		case span != nil:
		case len(s.of) < maxSpans:
			span = &Span{}
			s.of[k] = span
		default:
			if s.rest == nil {
				s.rest = &Span{}
			}
			s.rest.hold(from, to, !s.was[k], after && s.was[k])
			continue
		}
		span.hold(from, to, !s.was[k], after && s.was[k])
	}
	s.was = now
}

// longestFirst gives the things, those that held longest first.
func (s *spans[K]) longestFirst(compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(s.of), func(a, b K) int {
		return cmp.Or(cmp.Compare(s.of[b].total, s.of[a].total), compare(a, b))
	})
}

// total is how long all of them held, counted each.
func (s *spans[K]) total() (t time.Duration) {
	for _, span := range s.of {
		t += span.total
	}
	return t
}
