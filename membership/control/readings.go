package control

import (
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// policy takes the election timeout that the running members tell. Where they
// differ the shortest judges, since it is the first to call an election.
func (g *Gatherer) policy(v membership.View) membership.Policy {
	p := g.Policy
	told := fitness.Duration(0)
	for _, m := range v.Voters() {
		t := g.told[m.Host]
		if t == nil || t.report.Facts.Member == nil {
			continue
		}
		if e := t.report.Facts.Member.ElectionTimeout; e > 0 && (told == 0 || e < told) {
			told = e
		}
	}
	if told > 0 {
		p.Limits.ElectionTimeout = told
	}
	return p
}

// settle is how long after the start of a member its host's samples do not
// count: etcd replays its log, and is told nothing by its peers for the first
// elections.
func settle(l fitness.Limits) time.Duration { return 5 * l.ElectionTimeout.Std() }

// maxPeriod bounds what an agent may call its period: with one of hours, its
// samples would never grow old.
const maxPeriod = time.Minute

func (g *Gatherer) readings(in membership.Inputs, hosts []Roster) []fitness.Reading {
	from := map[string]time.Time{}
	for _, h := range hosts {
		from[h.Name] = in.View.MembershipSince
		if t := g.told[h.Name]; t != nil && t.report.Facts.Member != nil {
			if s := time.UnixMicro(t.report.Facts.Member.Started).Add(settle(in.Policy.Limits)); s.After(from[h.Name]) {
				from[h.Name] = s
			}
		}
	}
	var out []fitness.Reading
	for _, h := range hosts {
		t := g.told[h.Name]
		if t == nil {
			continue
		}
		for _, s := range t.series {
			c := fitness.Context{Host: h.Name, Now: t.received, Period: min(t.report.Period.Std(), maxPeriod), NotBefore: from[h.Name],
				Limit: in.Policy.Limits.For(s.Signal, t.report.Facts.MemoryTotal)}
			if p := from[s.Peer]; s.Peer != "" && p.After(c.NotBefore) {
				c.NotBefore = p
			}
			if s.Signal == fitness.Stability {
				// A restart is what stability counts; the samples around it are its own.
				c.NotBefore = in.View.MembershipSince
			}
			if !t.fresh {
				c.Now = in.Now // its samples grow old while it does not answer
			}
			out = append(out, fitness.Read(*s, c))
		}
	}
	slices.SortFunc(out, func(a, b fitness.Reading) int {
		if c := strings.Compare(a.Host, b.Host); c != 0 {
			return c
		}
		if c := strings.Compare(string(a.Signal), string(b.Signal)); c != 0 {
			return c
		}
		return strings.Compare(a.Peer, b.Peer)
	})
	return out
}
