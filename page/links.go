package page

import (
	"cmp"
	"slices"

	"suffrage/fitness"
)

// Link is a pair of hosts, A before B by name, with its round trips both ways.
type Link struct {
	A string `json:"a"`
	B string `json:"b"`
	// Voters: both ends vote.
	Voters bool `json:"voters"`
	// Band is of the worse way: under, between, over or unknown.
	Band fitness.Band `json:"band"`
	// P99 is of the worse way, in seconds; null until a window is full. There and Back
	// are the ways from A and from B.
	P99   *fitness.Figure `json:"p99"`
	There *fitness.Figure `json:"there"`
	Back  *fitness.Figure `json:"back"`
	// Limit is what a voter's p99 may not be above, in seconds, and Candidate up to
	// what a standby's is fit.
	Limit     fitness.Figure `json:"limit"`
	Candidate fitness.Figure `json:"candidate"`
}

// Text is the p99 of the worse way.
func (l Link) Text() string { return figure(l.P99) }

func linksOf(l Look) []Link {
	votes, known := map[string]bool{}, map[string]bool{}
	for _, m := range l.Inputs.View.Voters() {
		votes[m.Host] = true
	}
	for _, h := range l.Inputs.View.Hosts {
		known[h.Name] = true
	}
	type pair struct{ a, b string }
	found := map[pair]*Link{}
	for _, r := range l.Inputs.Readings {
		if r.Signal != fitness.RTT || !known[r.Host] || !known[r.Peer] || !votes[r.Host] && !votes[r.Peer] {
			continue
		}
		k := pair{min(r.Host, r.Peer), max(r.Host, r.Peer)}
		link := found[k]
		if link == nil {
			link = &Link{A: k.a, B: k.b, Voters: votes[k.a] && votes[k.b], Band: r.Band, Limit: r.Limit.Voter, Candidate: r.Limit.Candidate}
			found[k] = link
		}
		link.take(r)
	}
	out := []Link{}
	for _, link := range found {
		out = append(out, *link)
	}
	slices.SortFunc(out, func(a, b Link) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	return out
}

func (l *Link) take(r fitness.Reading) {
	if badness(r.Band) > badness(l.Band) {
		l.Band = r.Band
	}
	if r.Count < fitness.WindowSize {
		return
	}
	way := &l.There
	if r.Host == l.B {
		way = &l.Back
	}
	f := r.Figure
	*way = &f
	if l.P99 == nil || f > *l.P99 {
		l.P99 = &f
	}
}

// badness orders bands: one way that is over its limit is a fact even where the other
// cannot say.
func badness(b fitness.Band) int {
	return slices.Index([]fitness.Band{fitness.Under, fitness.Between, fitness.Unknown, fitness.Over}, b)
}
