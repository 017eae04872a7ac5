package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"suffrage/fitness"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/page"
)

// pageSource is what the page shows: the newest round where this controller leads,
// else a look of its own, at most one each round and only while somebody watches.
type pageSource struct {
	fleet   *fleet
	loop    *control.Loop
	history *page.History
	leads   atomic.Pointer[etcd.Leadership] // nil while it stands by

	mu   sync.Mutex // one look at a time
	own  *control.Gatherer
	last page.Look
	at   time.Time
}

// Look is page.Source.
func (p *pageSource) Look(ctx context.Context) (page.Look, error) {
	if s, l := p.loop.Last(), p.leads.Load(); s != nil && l != nil {
		return page.Look{Inputs: s.Inputs, Decision: s.Decision, Leads: true, Controller: l.Host, Since: l.Since, Series: s.Series}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < p.fleet.Controller.Round.Std() {
		return p.last, nil
	}
	if p.own == nil {
		p.own = p.fleet.gatherer(nil)
	}
	l, err := p.fleet.lookBy(ctx, p.own)
	if err != nil {
		return page.Look{}, err
	}
	p.history.Take(l.d)
	own := p.own
	p.last = page.Look{Inputs: l.in, Decision: l.d, Note: l.leaderNote,
		Series: func(host string) []fitness.Series { return own.Series(host) }}
	if l.leader != nil {
		p.last.Controller, p.last.Since = l.leader.Host, l.leader.Since
	}
	p.at = time.Now()
	return p.last, nil
}
