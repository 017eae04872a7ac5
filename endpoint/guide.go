package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// route is where requests are led. It is never changed, only replaced.
type route struct {
	reads, writes *voter        // nil when there is none
	err           error         // why there is none; nil before the first look ended
	next          chan struct{} // closed when there is a newer one
}

func (r *route) to(k kind) *voter {
	if k == write {
		return r.writes
	}
	return r.reads
}

// guide keeps the route right. All of it belongs to the goroutine of run.
type guide struct {
	*Endpoint
	known []string  // client URLs of the voters as last listed
	lost  time.Time // since when no look has found a voter that is well
	local int       // how many looks in a row found this host's own one well
	said  string    // the last thing logged
}

// run looks every second, and at once when a request could not be led.
func (g *guide) run(ctx context.Context) {
	defer g.publish(nil, nil, errEnds)
	for {
		g.round(ctx)
		if !pause(ctx, leastPause) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-g.kicked:
		case <-time.After(lookEvery - leastPause):
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// round is one look, at the voter in use and, where that is not enough, at others.
func (g *guide) round(ctx context.Context) {
	now := g.route.Load()
	var sights []sight
	if now.reads != nil {
		sights = append(sights, g.look(ctx, now.reads))
	}
	switch {
	case len(sights) == 0 || !sights[0].well() || sights[0].leaves():
		sights = append(sights, g.lookAll(ctx, g.others(now.reads, sights))...)
	default:
		if u := g.own(sights[0]); u != "" && u != now.reads.url {
			sights = append(sights, g.lookAll(ctx, []string{u})...)
		}
	}
	if ctx.Err() != nil {
		g.drop(sights, now)
		return
	}
	best := g.best(sights, now.reads)
	if best == nil {
		g.none(sights, now)
		g.drop(sights, g.route.Load())
		return
	}
	g.lost = time.Time{}
	g.known = voters(best.members)
	g.publish(best.voter, g.leader(ctx, *best, sights, now), nil)
	g.drop(sights, g.route.Load())
	g.say(fmt.Sprintf("reads go to %s, writes to %s", g.route.Load().reads.label, g.route.Load().writes.label), nil)
}

// others are all other URLs where a voter may be.
func (g *guide) others(but *voter, sights []sight) []string {
	urls := append(slices.Clone(g.known), g.o.Etcd.Endpoints...)
	if len(sights) > 0 && sights[0].members != nil {
		urls = append(voters(sights[0].members), urls...)
	}
	for i, u := range urls {
		urls[i] = strings.TrimRight(u, "/")
	}
	slices.Sort(urls)
	urls = slices.Compact(urls)
	return slices.DeleteFunc(urls, func(u string) bool { return but != nil && u == but.url })
}

// voters are the client URLs of those that vote, one each.
func voters(members []*pb.Member) (urls []string) {
	for _, m := range members {
		if !m.IsLearner && len(m.ClientURLs) > 0 {
			urls = append(urls, strings.TrimRight(m.ClientURLs[0], "/"))
		}
	}
	return urls
}

// own is the URL of this host's voter, "" where it has none.
func (g *guide) own(s sight) string {
	for _, u := range voters(s.members) {
		if g.here(u) {
			return u
		}
	}
	return ""
}

// here reports whether a URL is of this host.
func (g *guide) here(u string) bool {
	at, err := url.Parse(u)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(at.Hostname())
	return err == nil && a == g.o.Address
}

// best is the voter that reads are led to, nil where none is well. The one in use
// stays; only this host's own is better, once it has been well for a minute: a
// newcomer may be taken back until then.
func (g *guide) best(sights []sight, now *voter) *sight {
	rank := func(s *sight) (n int) {
		here := g.here(s.voter.url)
		switch {
		case here && s.voter != now && now != nil && g.local < settled:
		case here:
			n = 3
		case s.voter == now:
			n = 2
		case s.voter.id == s.leader:
			n = 1
		}
		if s.leaves() {
			n -= 10
		}
		return n
	}
	var best *sight
	seen := 0
	for i := range sights {
		s := &sights[i]
		if !s.well() {
			continue
		}
		if g.here(s.voter.url) {
			seen = g.local + 1
		}
		if best == nil || rank(s) > rank(best) || rank(s) == rank(best) && s.voter.id < best.voter.id {
			best = s
		}
	}
	g.local = seen
	return best
}

// leader is the voter that writes are led to: where the leader cannot be reached
// from here, the one for reads, which passes them on.
func (g *guide) leader(ctx context.Context, best sight, sights []sight, now *route) *voter {
	if best.leader == best.voter.id {
		return best.voter
	}
	for _, s := range sights {
		if s.well() && s.voter.id == best.leader {
			return s.voter
		}
	}
	m := best.member(best.leader)
	if len(m.ClientURLs) == 0 {
		return best.voter
	}
	v := now.writes
	if v == nil || v == now.reads || v.id != m.ID {
		fresh, err := g.connect(strings.TrimRight(m.ClientURLs[0], "/"))
		if err != nil {
			return best.voter
		}
		v = fresh
		v.id, v.label = m.ID, label(m)
	}
	if s := g.look(ctx, v); !s.well() || v.id != m.ID {
		if v != now.writes {
			v.retire(0)
		}
		return best.voter
	}
	return v
}

// none is a round in which no voter was well. A while is waited before requests
// are refused, as during an election; not where there has never been one.
func (g *guide) none(sights []sight, now *route) {
	why := g.reasons(sights)
	g.say("no voter of etcd can be led to", why)
	if g.lost.IsZero() {
		g.lost = time.Now()
	}
	if now.reads == nil || time.Since(g.lost) > Patience {
		g.publish(nil, nil, why)
	}
}

func (g *guide) reasons(sights []sight) error {
	var texts []string
	for _, s := range sights {
		texts = append(texts, fmt.Sprintf("%s: %v", s.voter.label, s.err))
	}
	if len(texts) == 0 {
		return errors.New("nobody is known to ask: etcd.endpoints")
	}
	slices.Sort(texts)
	return errors.New(clip(strings.Join(texts, "; ")))
}

// publish replaces the route, and then leaves whoever is not on it any more.
func (g *guide) publish(reads, writes *voter, err error) {
	was := g.route.Load()
	if was.reads == reads && was.writes == writes && (reads != nil || was.err != nil) {
		if err == nil || was.err != nil && was.err.Error() == err.Error() {
			return
		}
	}
	if reads != nil {
		g.o.Metrics.led(reads.label, writes.label)
	} else {
		g.o.Metrics.led("", "")
	}
	g.route.Store(&route{reads, writes, err, make(chan struct{})})
	close(was.next)
	for _, v := range []*voter{was.reads, was.writes} {
		if v != nil && v != reads && v != writes {
			g.remember(v)
			g.o.Metrics.left.Inc()
			v.retire(Grace)
		}
	}
}

// drop ends the connections that were made for looking only.
func (g *guide) drop(sights []sight, now *route) {
	for _, s := range sights {
		if s.voter != now.reads && s.voter != now.writes {
			s.voter.retire(Grace)
		}
	}
}

// say logs what is new.
func (g *guide) say(what string, err error) {
	text := what
	if err != nil {
		text += err.Error()
	}
	if g.said == text {
		return
	}
	g.said = text
	if err != nil {
		g.o.Log.Warn(what, "err", err)
		return
	}
	g.o.Log.Info("datastore endpoint leads", "to", what)
}
