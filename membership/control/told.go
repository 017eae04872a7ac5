package control

import (
	"maps"
	"slices"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// told is what one agent has told so far, with times by our own clock.
type told struct {
	instance string
	last     uint64
	report   fitness.Report // of the last pull, without series
	received time.Time
	fresh    bool // pulled in this round
	series   map[key]*fitness.Series
}

type key struct {
	signal fitness.Signal
	peer   string
}

// forget drops all series when the voters are not those of the round before:
// what was measured under another membership does not count.
func (g *Gatherer) forget(v membership.View) {
	voters := map[string]string{}
	for _, m := range v.Voters() {
		voters[m.Host] = m.ID
	}
	if g.voters != nil && !maps.Equal(voters, g.voters) {
		g.mu.Lock()
		clear(g.told)
		g.mu.Unlock()
	}
	g.voters = voters
}

// takeIn adds what a report brought to what its agent told before. Of round
// trips, those without a voter at either end are left out: nothing asks for
// them, and there are as many as hosts squared.
func (g *Gatherer) takeIn(p pulled) {
	if p.err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := p.report
	t := g.told[p.host.Name]
	switch {
	case t == nil:
		t = &told{instance: r.Instance, series: map[key]*fitness.Series{}}
		g.told[p.host.Name] = t
	case t.instance != r.Instance:
		// It was asked for what came after the last sample of the agent before.
		// The next pull asks for all that this one has.
		t = &told{instance: r.Instance, series: map[key]*fitness.Series{}}
		g.told[p.host.Name] = t
		r.Series, r.Last = nil, 0
	}
	// Without a quorum they are those of the last view that had one; before the
	// first, all pairs are kept.
	votes := func(host string) bool { return g.voters == nil || g.voters[host] != "" }
	shift := p.received.UnixMicro() - r.Now
	for _, s := range r.Series {
		if s.Signal.OfPair() && !votes(p.host.Name) && !votes(s.Peer) {
			continue
		}
		k := key{s.Signal, s.Peer}
		kept := t.series[k]
		if kept == nil {
			kept = &fitness.Series{Signal: s.Signal, Peer: s.Peer}
			t.series[k] = kept
		}
		for _, m := range s.Samples {
			m.At += shift
			kept.Samples = append(kept.Samples, m)
		}
		kept.Samples = newest(kept.Samples, fitness.SeriesSize)
		kept.Bounds = kept.Bounds[:0]
		for _, b := range s.Bounds {
			b.At += shift
			kept.Bounds = append(kept.Bounds, b)
		}
		kept.Error = s.Error
	}
	if m := r.Facts.Member; m != nil {
		shifted := *m
		shifted.Started += shift
		r.Facts.Member = &shifted
	}
	if s := r.Facts.ScheduledSnapshot; s != nil {
		r.Facts.ScheduledSnapshot = &fitness.ScheduledSnapshot{Next: s.Next + shift, Running: s.Running}
	}
	r.Facts.Paths = slices.Clone(r.Facts.Paths)
	for i := range r.Facts.Paths {
		if p := &r.Facts.Paths[i]; p.Since != 0 {
			p.Since += shift
		}
	}
	if r.Facts.OverlayExpires != 0 {
		r.Facts.OverlayExpires += shift
	}
	r.Series = nil
	t.last, t.report, t.received, t.fresh = r.Last, r, p.received, true
}

// Series gives copies of what a host's agent told so far: the newest samples of each
// signal. Safe while Gather is at work.
func (g *Gatherer) Series(host string) []fitness.Series {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.told[host]
	if t == nil {
		return nil
	}
	var out []fitness.Series
	for _, s := range t.series {
		c := *s
		c.Samples, c.Bounds = slices.Clone(s.Samples), slices.Clone(s.Bounds)
		out = append(out, c)
	}
	return out
}

// newest keeps the last n samples in place, so that the array does not grow.
func newest(s []fitness.Sample, n int) []fitness.Sample {
	if len(s) <= n {
		return s
	}
	copy(s, s[len(s)-n:])
	return s[:n]
}
