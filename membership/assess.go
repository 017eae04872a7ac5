package membership

import (
	"slices"

	"suffrage/fitness"
)

// assessment is Inputs put in order: who votes, what is read of whom. It is
// built once per decision and everything after it is lookups.
type assessment struct {
	in     Inputs
	names  []string // of all hosts, sorted
	hosts  map[string]*Host
	voters []string          // hosts that vote, sorted; members without a host are the guards' case
	clear  []string          // of them, those that are not certainly to blame now
	rank   map[string]int    // voter host → place in voters
	member map[string]string // voter host → member ID
	listed map[string]bool   // hosts that have a member of any kind
	leader string            // host that leads

	database int64 // the largest one among the voters, in bytes
	scratch  []fitness.Reading

	read  map[string]*readings
	spare []readings    // made at once for all hosts
	blame fitness.Blame // of what has been so for a whole window: for acting
	now   fitness.Blame // of what is so now: for showing
}

// readings are those of one host: its own, in the order of fitness.HostSignals,
// and per voter its round trips with it. What was not given is nil.
type readings struct {
	own   [len(fitness.HostSignals)]*fitness.Reading
	pings [fitness.MaxVoters]both
}

// both are the readings of one host and one voter: taken on the host, and taken
// on the voter.
type both struct{ out, back *fitness.Reading }

// cut is the direction in which the newest pings were lost, nil when none is.
func (b both) cut() *fitness.Reading {
	if cutOff(b.out) {
		return b.out
	}
	if cutOff(b.back) {
		return b.back
	}
	return nil
}

// worst is the higher figure of the two.
func (b both) worst() (f fitness.Figure) {
	for _, r := range []*fitness.Reading{b.out, b.back} {
		if r != nil {
			f = max(f, r.Figure)
		}
	}
	return f
}

func assess(in Inputs) *assessment {
	n := len(in.View.Hosts)
	a := &assessment{in: in, names: make([]string, 0, n), hosts: make(map[string]*Host, n), rank: map[string]int{},
		member: map[string]string{}, listed: map[string]bool{}, read: make(map[string]*readings, n)}
	for i := range in.View.Hosts {
		h := &in.View.Hosts[i]
		a.hosts[h.Name] = h
		a.names = append(a.names, h.Name)
	}
	slices.Sort(a.names)
	leader := in.View.Leader()
	for _, m := range in.View.Voters() {
		a.database = max(a.database, m.DBSize)
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
	for _, m := range in.View.Members {
		a.listed[m.Host] = true
	}
	for i := range in.Readings {
		a.place(&in.Readings[i])
	}
	a.blame, a.now = a.find(fitness.Whole), a.find(0)
	a.blame.Suspects = agree(a.blame.Suspects, a.now.Suspects)
	a.clear = without(a.voters, a.now.Certain)
	return a
}

func (a *assessment) place(r *fitness.Reading) {
	if r.Signal == fitness.RTT {
		if i, ok := a.rank[r.Peer]; ok {
			put(&a.of(r.Host).pings[i].out, r)
		}
		if i, ok := a.rank[r.Host]; ok {
			put(&a.of(r.Peer).pings[i].back, r)
		}
	} else if i := slices.Index(fitness.HostSignals[:], r.Signal); i >= 0 {
		put(&a.of(r.Host).own[i], r)
	}
}

// put fills a place once. A reading that was given twice is unknown: the order
// in which they came must not choose between them.
func put(place **fitness.Reading, r *fitness.Reading) {
	if *place != nil {
		r = &fitness.Reading{Signal: r.Signal, Host: r.Host, Peer: r.Peer, Limit: r.Limit, Note: "it was given twice"}
	}
	*place = r
}

func (a *assessment) of(host string) *readings {
	r := a.read[host]
	if r == nil {
		if len(a.spare) == 0 {
			a.spare = make([]readings, len(a.names)+1)
		}
		r, a.spare = &a.spare[0], a.spare[1:]
		a.read[host] = r
	}
	return r
}

// with gives the round trips between a host and a voter.
func (a *assessment) with(host, voter string) both {
	r, i := a.read[host], a.rank[voter]
	if r == nil {
		return both{}
	}
	return r.pings[i]
}

// find lays the blame for what has been over for so many evaluations.
func (a *assessment) find(held int) fitness.Blame {
	own := map[string]bool{}
	for _, v := range a.voters {
		own[v] = slices.ContainsFunc(a.of(v).own[:], func(r *fitness.Reading) bool { return over(r, held) })
	}
	others := slices.DeleteFunc(slices.Clone(a.names), a.isVoter)
	return fitness.Find(fitness.Fleet{Voters: a.voters, Others: others, Own: own,
		Slow: func(x, y string) bool { return a.slow(x, y, held) }, Fast: a.fast})
}

// agree keeps of the suspects of a whole window those that what is slow now
// leaves suspect. The pairs of one slow voter do not become whole at the same
// sample, and for that moment the first of them is a pair with two ends that
// nothing tells apart; the others, slow for nearly as long, do.
func agree(whole, now []fitness.Suspect) []fitness.Suspect {
	var out []fitness.Suspect
	for _, s := range whole {
		i := slices.IndexFunc(now, func(n fitness.Suspect) bool { return n.Host == s.Host })
		switch {
		case i >= 0 && s.By == "order" && now[i].By != "own":
			s.By = now[i].By
		case i < 0 && s.By != "own":
			continue
		}
		out = append(out, s)
	}
	return out
}

// slow reports whether a host's pair with a voter has violated the voters'
// limit, in either direction, for so many evaluations.
func (a *assessment) slow(host, voter string, held int) bool {
	b := a.with(host, voter)
	return over(b.out, held) || over(b.back, held)
}

// fast reports whether a host's pair with a voter is known not to violate it.
func (a *assessment) fast(host, voter string) bool {
	b := a.with(host, voter)
	known := func(r *fitness.Reading) bool { return r != nil && r.Band != fitness.Unknown }
	return (known(b.out) || known(b.back)) && !a.slow(host, voter, 0)
}

func over(r *fitness.Reading, held int) bool {
	return r != nil && r.Band == fitness.Over && r.Held >= held
}

func without(hosts []string, not []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return slices.Contains(not, h) })
}

// verdict judges a host beside the voters, leaving out those that are certainly
// to blame for what is slow now: with three voters one slow one would make all
// three unfit. A pair of which nothing tells the slow end spoils both.
func (a *assessment) verdict(host string) fitness.Verdict {
	return fitness.Judge(host, a.evidence(host, a.beside(host)))
}

func (a *assessment) beside(host string) []string {
	if slices.Contains(a.now.Certain, host) {
		return a.voters
	}
	return a.clear
}

// worstPair is the worst p99 round trip among the voters, nil unless each pair
// has a full window.
func (a *assessment) worstPair() *fitness.Figure {
	var worst *fitness.Figure
	for i, x := range a.voters {
		for _, y := range a.voters[i+1:] {
			b := a.with(x, y)
			if b.out == nil || b.back == nil || b.out.Band == fitness.Unknown || b.back.Band == fitness.Unknown {
				return nil
			}
			if w := b.worst(); worst == nil || w > *worst {
				worst = &w
			}
		}
	}
	return worst
}
