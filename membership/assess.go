package membership

import (
	"fmt"
	"slices"
	"sort"

	"suffrage/fitness"
)

// assessment is Inputs put in order: who votes, what is read of whom. It is
// built once per decision and everything after it is lookups.
type assessment struct {
	in     Inputs
	hosts  map[string]Host
	voters []string          // hosts that vote, sorted; members without a host are the guards' case
	member map[string]string // voter host → member ID
	rank   map[string]int    // voter host → place in voters
	own    map[string][]fitness.Reading
	pings  map[string]*[fitness.MaxVoters]both // host → per voter, its round trips with it
	blame  fitness.Blame                       // of what has been so for a whole window: for acting
	now    fitness.Blame                       // of what is so now: for showing
	leader string                              // host that leads
}

// both are the readings of one host and one voter: taken on the host, and taken
// on the voter.
type both struct{ out, back *fitness.Reading }

func assess(in Inputs) *assessment {
	a := &assessment{in: in, hosts: map[string]Host{}, member: map[string]string{}, rank: map[string]int{},
		own: map[string][]fitness.Reading{}, pings: map[string]*[fitness.MaxVoters]both{}}
	for _, h := range in.View.Hosts {
		a.hosts[h.Name] = h
	}
	leader := in.View.Leader()
	for _, m := range in.View.Voters() {
		if m.ID == leader {
			a.leader = m.Host
		}
		if _, known := a.hosts[m.Host]; known && a.member[m.Host] == "" {
			a.voters = append(a.voters, m.Host)
			a.member[m.Host] = m.ID
		}
	}
	slices.Sort(a.voters)
	a.voters = a.voters[:min(len(a.voters), fitness.MaxVoters)] // more are refused by guardCount
	for i, v := range a.voters {
		a.rank[v] = i
	}
	for i := range in.Readings {
		a.place(&in.Readings[i])
	}
	for _, rs := range a.own {
		sort.Slice(rs, func(i, j int) bool { return rs[i].Signal < rs[j].Signal })
	}
	a.blame = fitness.Find(fitness.Fleet{Voters: a.voters, Others: a.others(), Own: a.sick(), Slow: a.slow(fitness.Whole)})
	a.now = fitness.Find(fitness.Fleet{Voters: a.voters, Others: a.others(), Slow: a.slow(1)})
	return a
}

func (a *assessment) place(r *fitness.Reading) {
	switch {
	case r.Signal == fitness.RTT:
		if i, ok := a.rank[r.Peer]; ok {
			a.row(r.Host)[i].out = r
		}
		if i, ok := a.rank[r.Host]; ok {
			a.row(r.Peer)[i].back = r
		}
	case !r.Signal.OfPair() && r.Signal.Gates():
		a.own[r.Host] = append(a.own[r.Host], *r)
	}
}

func (a *assessment) row(host string) *[fitness.MaxVoters]both {
	row := a.pings[host]
	if row == nil {
		row = new([fitness.MaxVoters]both)
		a.pings[host] = row
	}
	return row
}

// with gives the round trips between a host and a voter.
func (a *assessment) with(host, voter string) both {
	row := a.pings[host]
	i, ok := a.rank[voter]
	if row == nil || !ok {
		return both{}
	}
	return row[i]
}

// slow reports whether a pair has violated the voters' limit, in either
// direction, for so many evaluations. One of the two has to be a voter.
func (a *assessment) slow(held int) func(x, y string) bool {
	return func(x, y string) bool {
		if _, ok := a.rank[y]; !ok {
			x, y = y, x
		}
		b := a.with(x, y)
		return over(b.out, held) || over(b.back, held)
	}
}

func over(r *fitness.Reading, held int) bool {
	return r != nil && r.Band == fitness.Over && r.Held >= held
}

// sick are the voters whose own signals have been over for a whole window.
func (a *assessment) sick() map[string]bool {
	out := map[string]bool{}
	for _, v := range a.voters {
		if slices.ContainsFunc(a.own[v], func(r fitness.Reading) bool { return over(&r, fitness.Whole) }) {
			out[v] = true
		}
	}
	return out
}

// others are the hosts without a vote, sorted.
func (a *assessment) others() []string {
	var out []string
	for _, h := range a.in.View.Hosts {
		if _, votes := a.rank[h.Name]; !votes {
			out = append(out, h.Name)
		}
	}
	slices.Sort(out)
	return out
}

// evidence are the readings that a host is judged by beside the given voters:
// its own, and its round trips with each of them. What should be there and is
// not counts as unknown; a host that is silent is judged by the pings that
// others lost to it.
func (a *assessment) evidence(host string, voters []string) []fitness.Reading {
	out := make([]fitness.Reading, 0, len(fitness.HostSignals)+2*len(voters))
	own := a.own[host]
	for _, s := range fitness.HostSignals {
		i := slices.IndexFunc(own, func(r fitness.Reading) bool { return r.Signal == s })
		if i < 0 {
			out = append(out, a.missing(s, host, ""))
			continue
		}
		out = append(out, own[i])
	}
	for _, v := range voters {
		if v == host {
			continue
		}
		b := a.with(host, v)
		switch {
		case b.out == nil && b.back == nil:
			out = append(out, a.missing(fitness.RTT, host, v))
		case b.out == nil:
			out = append(out, turned(*b.back))
		case b.back == nil || !worse(*b.back, *b.out):
			out = append(out, *b.out)
		default:
			out = append(out, turned(*b.back))
		}
	}
	return out
}

// turned is a reading taken at the other end, told from this one.
func turned(r fitness.Reading) fitness.Reading {
	r.Host, r.Peer = r.Peer, r.Host
	return r
}

// worse reports whether a says worse of the pair than b: over before between
// before under before unknown; within one band, the one that has held longer in
// violation, shorter in fitness, then the higher figure. One end that cannot say
// does not silence the other: an agent that is away or has just started is a
// refusal of its own, not one of every voter that it pings.
func worse(a, b fitness.Reading) bool {
	order := map[fitness.Band]int{fitness.Over: 3, fitness.Between: 2, fitness.Under: 1, fitness.Unknown: 0}
	if x, y := order[a.Band], order[b.Band]; x != y {
		return x > y
	}
	if a.Held != b.Held {
		return (a.Held > b.Held) == (a.Band == fitness.Over)
	}
	return a.Figure > b.Figure
}

func (a *assessment) missing(s fitness.Signal, host, peer string) fitness.Reading {
	note := "no samples"
	if h := a.hosts[host]; !h.Reachable {
		note = "agent does not answer"
	}
	return fitness.Reading{Signal: s, Host: host, Peer: peer, Note: note, Since: a.in.Now, Limit: a.in.Policy.Limits.For(s, 0)}
}

// verdict judges a host beside the voters, leaving out those that are certainly
// to blame for what is slow now: with three voters one slow one would make all
// three unfit. A pair of which nothing tells the slow end spoils both.
func (a *assessment) verdict(host string) fitness.Verdict {
	beside := a.voters
	if !slices.Contains(a.now.Certain, host) {
		beside = without(a.voters, a.now.Certain)
	}
	return fitness.Judge(host, a.evidence(host, beside))
}

// remaining are the voters that a candidate is judged beside when one leaves:
// those that stay, without those that are certainly to blame themselves, since
// a slow pair with a slow voter says nothing of the candidate. (fitness.md asks
// a candidate to be fast to every voter that would remain; with two slow voters
// of five no candidate ever would be, and the fleet would keep both.)
func (a *assessment) remaining(out string) []string {
	return without(a.voters, append([]string{out}, a.blame.Certain...))
}

func without(hosts, not []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return slices.Contains(not, h) })
}

// data turns readings into the figures of a refusal or a plan.
func data(readings []fitness.Reading) []Datum {
	out := make([]Datum, 0, len(readings))
	for _, r := range readings {
		limit := r.Limit.Voter
		d := Datum{Name: string(r.Signal), Value: r.Figure, Limit: &limit, Unit: r.Signal.Unit(), Peer: r.Peer, Count: r.Count}
		if r.Band != fitness.Unknown {
			d.Since = r.Since
		}
		out = append(out, d)
	}
	return out
}

// violations are the readings of a host that have violated their limit for a whole window.
func (a *assessment) violations(host string) []fitness.Reading {
	return slices.DeleteFunc(a.evidence(host, a.voters), func(r fitness.Reading) bool { return !over(&r, fitness.Whole) })
}

func describe(readings []fitness.Reading) string {
	v := fitness.Judge("", readings)
	text := ""
	for i, r := range v.Reasons {
		if i == 3 {
			return text + fmt.Sprintf("; and %d more", len(v.Reasons)-3)
		}
		if i > 0 {
			text += "; "
		}
		text += r.String()
	}
	return text
}
