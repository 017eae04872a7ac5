package report

import (
	"slices"

	"suffrage/fitness"
	"suffrage/membership"
)

// acks are what a write waits for when one voter leads: its own fsync, and from
// each other voter a round trip and that one's fsync. Each part is the p99 of a
// window of its own; a round trip is the worse of its two directions.
//
// ok is false where any of them is not known.
func acks(m *membership.Moment, voters []string, leader string) (of []fitness.Figure, ok bool) {
	for _, v := range voters {
		disk, known := m.Figures[membership.FigureKey(fitness.WALFsync, v, "")]
		if !known {
			return nil, false
		}
		f := disk[0]
		if v != leader {
			trip, known := pair(m, leader, v)
			if !known {
				return nil, false
			}
			f += trip
		}
		of = append(of, f)
	}
	slices.Sort(of)
	return of, true
}

func pair(m *membership.Moment, a, b string) (fitness.Figure, bool) {
	there, ok := m.Figures[membership.FigureKey(fitness.RTT, a, b)]
	back, too := m.Figures[membership.FigureKey(fitness.RTT, b, a)]
	return max(there[0], back[0]), ok || too
}

// commit is what the slowest voter that a write has to wait for would take:
// with the leader as it was, with the worst of all as the leader, and with the
// worst as the leader while the fastest of the others is lost.
type commit struct{ led, any, lost fitness.Figure }

// commitOf asks it of some voters. Without a leader the worst one leads.
func commitOf(m *membership.Moment, voters []string, leader string) (c commit, ok bool) {
	quorum := len(voters)/2 + 1
	for _, l := range voters {
		of, ok := acks(m, voters, l)
		if !ok {
			return commit{}, false
		}
		c.any = max(c.any, of[quorum-1])
		if l == leader {
			c.led = of[quorum-1]
		}
		if quorum < len(of) {
			c.lost = max(c.lost, of[quorum])
		}
	}
	if !slices.Contains(voters, leader) {
		c.led = c.any
	}
	return c, len(voters) > 0
}

// instead is the voters once in has the vote of out.
func instead(voters []string, out, in string) []string {
	return append(slices.DeleteFunc(slices.Clone(voters), func(v string) bool { return v == out || v == in }), in)
}
