package memtest

import (
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// settleTime is how long a voter may keep the member list from before a change.
const settleTime = 6 * time.Second

// answers: it answers on a fresh connection.
func (c *Cluster) answers(m *Member) bool {
	return c.alive(m) && m.Published && !c.Now.Before(c.Host(m.Host).portAt)
}

// since is since when something has been what it is, by the controller's clock.
func (p *Controller) since(key string, up bool, now time.Time) time.Time {
	s, known := p.states[key]
	if !known || s.up != up {
		s = state{up, now}
		p.states[key] = s
	}
	return s.since
}

// inputs are what this controller sees now.
func (p *Controller) inputs() membership.Inputs {
	c := p.c
	now := c.Now.Add(p.Offset)
	local := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(p.Offset)
	}
	in := membership.Inputs{Version: membership.InputsVersion, Now: now, Policy: c.Policy, Term: p.term, Previous: p.previous,
		View: membership.View{At: now, ClusterID: c.ID, RecordedClusterID: c.ID, MembershipSince: local(c.Changed), MembershipChanged: local(c.Changed)}}
	if c.Request != nil && c.Policy.Mode == membership.Active {
		q := *c.Request
		q.At = local(q.At)
		in.Request = &q
	}
	if c.Lease.Open != nil {
		op := *c.Lease.Open
		in.Open = &op
	}
	for _, op := range c.History {
		in.Operations = append(in.Operations, op)
	}
	in.View.Members = p.members[:0]
	for i, m := range c.Members {
		x := membership.Member{ID: m.ID, Host: m.Host, PeerURLs: []string{m.Peer}, Learner: m.Learner}
		if m.Published {
			x.Name, x.ClientURLs = m.Host, []string{"https://" + m.Host + ":2379"}
		}
		x.Responding = c.answers(m) && !p.cannot[m.Host]
		x.Since = p.since(m.ID, x.Responding, now)
		if x.Responding {
			x.Leader, x.RaftTerm, x.RaftIndex, x.AppliedIndex, x.Version, x.DBSize, x.Opinion = c.Leader, c.Term, m.Index, m.Index, "3.7.3", 1<<20, c.opinion
			if c.Now.Sub(c.Changed) < settleTime && c.Changed.Unix()%3 == int64(i) {
				x.Opinion = c.before
			}
		} else {
			x.Error = "no answer in time"
		}
		in.View.Members = append(in.View.Members, x)
	}
	in.View.Hosts = p.hosts[:0]
	for _, h := range c.Hosts {
		x := membership.Host{Name: h.Name, Mark: h.Mark, Reachable: h.Reachable() && !p.cannot[h.Name], Software: "v1"}
		x.Since = p.since("agent "+h.Name, x.Reachable, now)
		if x.Reachable {
			x.Facts = h.facts()
			x.Facts.Endpoint = c.endpoint(h)
		}
		in.View.Hosts = append(in.View.Hosts, x)
	}
	for _, r := range c.Removals {
		in.View.Removals = append(in.View.Removals, *r)
	}
	if c.Alarm != "" {
		in.View.Alarms = []membership.Alarm{{Member: c.Members[0].ID, Kind: c.Alarm}}
	}
	in.Readings = p.readings(now)
	p.members, p.hosts = in.View.Members, in.View.Hosts
	return in
}

// readings are plausible ones: a bad host is slow with everybody, nothing is
// known of a silent agent, and after a change of members the windows begin
// again.
func (p *Controller) readings(now time.Time) []fitness.Reading {
	c := p.c
	voters := c.Voters()
	out := p.read[:0]
	limit := c.Policy.Limits.For(fitness.RTT, 0)
	full := c.Changed
	if !full.IsZero() {
		full = full.Add(c.Policy.Window())
	}
	read := func(r fitness.Reading, h *Host, bad bool, since time.Time) {
		if full.After(since) {
			since = full
		}
		if r.Since = now; h.Reachable() && !p.cannot[h.Name] && !c.Now.Before(since) {
			r.Band, r.Figure, r.Count = fitness.Under, 0.01, fitness.WindowSize
			if bad {
				r.Band, r.Figure = fitness.Over, 0.3
			}
			if r.Signal == fitness.Memory {
				if r.Figure = 6 << 30; bad {
					r.Figure = 1 << 30
				}
			}
			r.Held = int(min(c.Now.Sub(since)/c.Policy.Period.Std(), fitness.Whole))
			r.Since = since.Add(p.Offset)
		}
		out = append(out, r)
	}
	for _, h := range c.Hosts {
		for _, s := range fitness.HostSignals {
			if s != fitness.Memory {
				read(fitness.Reading{Signal: s, Host: h.Name, Limit: limit}, h, false, time.Time{})
				continue
			}
			since := h.PressedAt
			if full := h.regradedAt.Add(c.Policy.Window()); !h.regradedAt.IsZero() && full.After(since) {
				since = full
			}
			read(fitness.Reading{Signal: s, Host: h.Name, Limit: c.Policy.Limits.For(s, 8<<30)}, h, h.short(), since)
		}
		for _, v := range voters {
			if v.Host == h.Name {
				continue
			}
			o := c.Host(v.Host)
			since := o.BadSince
			if h.BadSince.After(since) {
				since = h.BadSince
			}
			r := fitness.Reading{Signal: fitness.RTT, Host: h.Name, Peer: v.Host, Limit: limit}
			if c.cut[h.Name+v.Host] || c.cut[v.Host+h.Name] {
				r.LostNow = 5
			}
			read(r, h, h.Bad || o.Bad, since)
		}
	}
	p.read = out
	return out
}
