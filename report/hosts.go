package report

import (
	"maps"
	"slices"
	"time"

	"suffrage/membership"
)

// maxHosts bounds the hosts that are told apart; others are counted.
const maxHosts = 200

type hosts struct {
	of   map[string]*hostSum
	left map[string]bool // without a place, up to as many again
}

// hostSum is what a period knows of a host.
type hostSum struct {
	mark           string
	voter, standby [len(statuses)]time.Duration
	reasons        spans[string]
	strip          [Columns]stripColumn
}

// stripColumn is how much of a column's time a host had which status in, and
// for how much of it it voted.
type stripColumn struct {
	in    [len(statuses)]float32
	votes float32
}

func (h *hosts) hold(p *Period, m *membership.Moment, from, to time.Time, after bool) {
	d := to.Sub(from)
	for i := range m.Hosts {
		mh := &m.Hosts[i]
		s := h.of[mh.Host]
		if s == nil {
			if len(h.of) >= maxHosts {
				if h.left == nil {
					h.left = map[string]bool{}
				}
				if len(h.left) < maxHosts {
					h.left[mh.Host] = true
				}
				continue
			}
			s = &hostSum{}
			h.of[mh.Host] = s
		}
		at, votes := slices.Index(statuses[:], mh.Status), slices.Contains(m.Voters, mh.Host)
		s.mark = mh.Mark
		if votes {
			s.voter[at] += d
		} else {
			s.standby[at] += d
		}
		s.reasons.hold(mh.Reasons, from, to, after)
		p.columns(from, to, func(c int, d time.Duration) {
			s.strip[c].in[at] += float32(d.Seconds())
			if votes {
				s.strip[c].votes += float32(d.Seconds())
			}
		})
	}
}

// sorted are the hosts: those that voted longer first, then by name.
func (h *hosts) sorted() []string {
	votes := func(name string) (t time.Duration) {
		for _, d := range h.of[name].voter {
			t += d
		}
		return t
	}
	return slices.SortedFunc(maps.Keys(h.of), func(a, b string) int {
		if x, y := votes(a), votes(b); x != y {
			if x > y {
				return -1
			}
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
}
