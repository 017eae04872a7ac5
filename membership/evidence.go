package membership

import (
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
)

// evidence are the readings that a host is judged by beside the given voters:
// its own, and its round trips with each of them. What should be there and is
// not counts as unknown. They are good until the next call: with a thousand
// hosts this is most of what a decision costs, and one slice does for all.
func (a *assessment) evidence(host string, voters []string) []fitness.Reading {
	if a.scratch == nil {
		a.scratch = make([]fitness.Reading, 0, len(fitness.HostSignals)+len(a.voters)+1)
	}
	out := a.scratch[:0]
	known := a.read[host]
	for i, s := range fitness.HostSignals {
		if known == nil || known.own[i] == nil {
			out = append(out, a.missing(s, host, ""))
			continue
		}
		out = append(out, *known.own[i])
	}
	for _, v := range voters {
		if v != host {
			out = append(out, *a.pair(host, v))
		}
	}
	a.scratch = out
	return out
}

// pair is the worse of the two directions between a host and a voter. What the
// host itself cannot say makes it unknown, since a dead probe is never fine,
// unless the other end finds the pair slow: a host that is silent is judged by
// the pings that others lost to it. What the other end cannot say is that
// host's refusal, not this one's: an agent that has just started would else
// make every voter unknown.
func (a *assessment) pair(host, voter string) *fitness.Reading {
	b := a.with(host, voter)
	out := b.out
	if out == nil {
		m := a.missing(fitness.RTT, host, voter)
		out = &m
	}
	if b.back == nil || b.back.Band == fitness.Unknown || !worse(b.back, out) {
		return out
	}
	turned := *b.back // told from this end
	turned.Host, turned.Peer = turned.Peer, turned.Host
	return &turned
}

// worse reports whether a says worse of the pair than b: over before unknown
// before between before under; within one band, the one that has held longer in
// violation, shorter in fitness, then the higher figure.
func worse(a, b *fitness.Reading) bool {
	if x, y := badness(a.Band), badness(b.Band); x != y {
		return x > y
	}
	if a.Held != b.Held {
		return (a.Held > b.Held) == (a.Band == fitness.Over)
	}
	return a.Figure > b.Figure
}

func badness(b fitness.Band) int {
	switch b {
	case fitness.Under:
		return 0
	case fitness.Between:
		return 1
	case fitness.Over:
		return 3
	}
	return 2
}

func (a *assessment) missing(s fitness.Signal, host, peer string) fitness.Reading {
	note := "no samples from " + host
	if h := a.hosts[host]; h == nil || !h.Reachable {
		note = "the agent on " + host + " does not answer"
	}
	return fitness.Reading{Signal: s, Host: host, Peer: peer, Note: note, Since: a.in.Now, Limit: a.in.Policy.Limits.For(s, 0)}
}

// violations are the readings of a voter that have been over for a whole window.
func (a *assessment) violations(voter string) []fitness.Reading {
	return only(a.evidence(voter, a.voters), func(r fitness.Reading) bool { return over(&r, fitness.Whole) })
}

// only keeps the readings that are meant, in place.
func only(readings []fitness.Reading, meant func(fitness.Reading) bool) []fitness.Reading {
	return slices.DeleteFunc(readings, func(r fitness.Reading) bool { return !meant(r) })
}

func unknown(r fitness.Reading) bool { return r.Band == fitness.Unknown }

func notUnder(r fitness.Reading) bool { return r.Band != fitness.Under }

// data turns readings into the figures of a refusal or a plan. Of one that is
// unknown there is no figure, only how many samples there are.
func data(readings []fitness.Reading) []Datum {
	out := make([]Datum, 0, len(readings))
	for _, r := range readings {
		limit := r.Limit.Candidate
		d := Datum{Name: string(r.Signal), Value: r.Figure, Limit: &limit, Unit: r.Signal.Unit(), Peer: r.Peer, Count: r.Count, Since: r.Since}
		switch r.Band {
		case fitness.Over:
			limit = r.Limit.Voter
		case fitness.Unknown:
			limit = fitness.WindowSize
			d.Name, d.Value, d.Unit, d.Since = d.Name+"_samples", fitness.Figure(r.Count), "1", time.Time{}
		}
		out = append(out, d)
	}
	return out
}

// describe says readings in words, the worst first and at most so many.
func describe(readings []fitness.Reading, most int) string {
	text := ""
	reasons := fitness.Judge("", readings).Reasons
	for i, r := range reasons {
		if i == most {
			return text + fmt.Sprintf("; and %d more", len(reasons)-most)
		}
		if i > 0 {
			text += "; "
		}
		text += r.String()
	}
	return text
}
