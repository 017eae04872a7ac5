package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"suffrage/fitness"
)

// proposal is a suspect with the best host to take its vote.
type proposal struct {
	suspect fitness.Suspect
	in      fitness.Standing
	ranked  []fitness.Standing
	cleared int
	worst   fitness.Figure // the worst p99 among the voters that there would be
}

// before orders proposals: a sure suspect before an unsettled one, more pairs
// cleared, then not the etcd leader, then the lower projected worst p99, then
// the name. (fitness.md, Blame.)
func (p *proposal) before(o *proposal, a *assessment) bool {
	b := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(b(p.suspect.By == "order"), b(o.suspect.By == "order")),
		cmp.Compare(o.cleared, p.cleared),
		cmp.Compare(b(p.suspect.Host == a.leader), b(o.suspect.Host == a.leader)),
		cmp.Compare(p.worst, o.worst),
		cmp.Compare(p.suspect.Host, o.suspect.Host),
	) < 0
}

// propose finds the best candidate to take the suspect's vote, nil when no host
// can.
func (a *assessment) propose(s fitness.Suspect, verdicts []fitness.Verdict) *proposal {
	rest := a.remaining(s.Host)
	var ranked []fitness.Standing
	for _, v := range verdicts {
		if obstacle := a.obstacle(v.Host, rest); obstacle == nil {
			ranked = append(ranked, a.standing(v.Host, s.Host, rest))
		}
	}
	if len(ranked) == 0 {
		return nil
	}
	limits := a.in.Policy.Limits
	slices.SortFunc(ranked, func(x, y fitness.Standing) int {
		return x.Compare(y, limits.For(fitness.RTT, 0), limits.For(fitness.WALFsync, 0))
	})
	best := ranked[0]
	// A plan that stood before keeps its candidate while that is still fit:
	// ranks that swing with the figures must not make the decision swing.
	if a.in.Previous != nil {
		for _, r := range ranked {
			if a.in.Previous.Key == string(Planned)+" "+s.Host+">"+r.Host {
				best = r
			}
		}
	}
	p := &proposal{suspect: s, in: best, ranked: ranked, cleared: s.Clears, worst: best.WorstRTT}
	for i, x := range rest {
		for _, y := range rest[i+1:] {
			b := a.with(x, y)
			for _, r := range []*fitness.Reading{b.out, b.back} {
				if r != nil {
					p.worst = max(p.worst, r.Figure)
				}
			}
		}
	}
	return p
}

// obstacle says why a host cannot take a vote beside the voters that would
// remain, nil when it can. Voters are passed over without a word: code is empty.
func (a *assessment) obstacle(host string, rest []string) *Refusal {
	h := a.hosts[host]
	if _, votes := a.rank[host]; votes || !h.Mark.IsEligible() || a.listed(host) {
		return &Refusal{}
	}
	refuse := func(c Code, kind RefusalKind, detail, next string, readings []fitness.Reading) *Refusal {
		return &Refusal{Code: c, Kind: kind, Subject: host, Detail: detail, Next: next, Figures: data(readings)}
	}
	if !h.Reachable {
		return refuse(NoCandidate, Hold, "its agent does not answer: "+h.Error, "lifts when it answers", nil)
	}
	if missing := unqualified(h); missing != "" {
		return refuse(NotQualified, Owner, missing, "see `suffrage explain "+host+"` and the log of its agent", nil)
	}
	for _, v := range a.voters {
		if s := a.hosts[v].Software; s != "" && h.Software != s {
			return refuse(VersionSkew, Owner, fmt.Sprintf("it runs suffrage %s, voter %s runs %s", h.Software, v, s), "install the voters' version on "+host, nil)
		}
	}
	if need := 2 * a.database(); h.Facts.DiskFree < need {
		limit := fitness.Figure(need)
		r := refuse(DiskSpace, Owner, fmt.Sprintf("%s free, twice the database is %s", fitness.Figure(h.Facts.DiskFree).Text("B"), limit.Text("B")), "free space on "+host, nil)
		r.Figures = []Datum{{Name: "disk_free", Value: fitness.Figure(h.Facts.DiskFree), Limit: &limit, Unit: "B"}}
		return r
	}
	readings := a.evidence(host, rest)
	switch v := fitness.Judge(host, readings); {
	case v.Status == fitness.StatusUnknown:
		return refuse(SamplesMissing, Hold, describe(notUnder(readings)), "lifts when every signal has a full window of fresh samples", notUnder(readings))
	case v.Status != fitness.Fit:
		return refuse(NoCandidate, Hold, v.String(), "lifts when it has been fit for a whole window", notUnder(readings))
	case !v.Whole:
		r := refuse(NotHeld, Hold, fmt.Sprintf("fit for %d evaluations of %d needed", v.Held, fitness.Whole), "lifts when it has been fit for a whole window", nil)
		limit := fitness.Figure(fitness.Whole)
		r.Figures = []Datum{{Name: "held", Value: fitness.Figure(v.Held), Limit: &limit, Unit: "1", Since: v.Since}}
		return r
	}
	return nil
}

func notUnder(rs []fitness.Reading) []fitness.Reading {
	return slices.DeleteFunc(slices.Clone(rs), func(r fitness.Reading) bool { return r.Band == fitness.Under })
}

// listed reports whether the host already has a member, of whatever kind.
func (a *assessment) listed(host string) bool {
	return slices.ContainsFunc(a.in.View.Members, func(m Member) bool { return m.Host == host })
}

// unqualified names the kinds of evidence that the host has not given: a vote
// goes only to a host that was measured itself, not one like it.
func unqualified(h Host) string {
	var missing []string
	if h.Facts.Disk == "" {
		missing = append(missing, "a disk that was written to")
	}
	if h.Facts.MemoryTotal <= 0 {
		missing = append(missing, "its memory")
	}
	if h.Facts.Link.Class == "" || h.Facts.Link.Class == fitness.UnknownLink {
		missing = append(missing, "the device of its mesh route")
	}
	if len(missing) == 0 {
		return ""
	}
	return "not measured on it: " + strings.Join(missing, ", ")
}

// database is the largest database among the voters, in bytes.
func (a *assessment) database() int64 {
	var n int64
	for _, m := range a.in.View.Voters() {
		n = max(n, m.DBSize)
	}
	return n
}

func (a *assessment) standing(host, out string, rest []string) fitness.Standing {
	h := a.hosts[host]
	s := fitness.Standing{Host: host, Link: h.Facts.Link.Class}
	zones := map[string]int{}
	for _, v := range append([]string{host}, a.voters...) {
		if z := a.hosts[v].Facts.Zone; v != out && z != "" {
			zones[z]++
			s.Crowd = max(s.Crowd, zones[z])
		}
	}
	for _, p := range h.Facts.Paths {
		if p.Kind == "relayed" && slices.Contains(rest, p.Peer) {
			s.Relayed = true
		}
	}
	for _, r := range a.evidence(host, rest) {
		switch r.Signal {
		case fitness.RTT:
			s.WorstRTT = max(s.WorstRTT, r.Figure)
		case fitness.WALFsync:
			s.WAL = r.Figure
		case fitness.Memory:
			s.Headroom = r.Figure - r.Limit.Candidate
		}
	}
	return s
}

// noCandidate says of each eligible host what it lacks to take the vote of one
// of the voters that should be moved.
func (a *assessment) noCandidate(outs []string, verdicts []fitness.Verdict) []Refusal {
	var lacks []Refusal
	for _, v := range verdicts {
		if o := a.obstacle(v.Host, a.remaining(outs[0])); o != nil && o.Code != "" {
			lacks = append(lacks, *o)
		}
	}
	if len(lacks) == 0 {
		return []Refusal{owner(NoCandidate, "", fmt.Sprintf("%s should be moved and no host without a vote is eligible", strings.Join(outs, ", ")),
			"mark a host: suffrage host eligible HOST")}
	}
	return lacks
}

func (a *assessment) plan(p *proposal) *Plan {
	out, in := p.suspect.Host, p.in.Host
	bad := a.violations(out)
	why := fmt.Sprintf("%s, for a whole window", describe(bad))
	switch p.suspect.By {
	case "witnesses":
		why += "; hosts outside the pair find it slow too"
	case "order":
		why += "; nothing tells which end of the pair is slow, so one is moved and the other judged again after the cooldown"
	}
	why += fmt.Sprintf("; without it %d of %d violating pairs remain; %s is fit (%s)", len(a.blame.Pairs)-p.cleared, len(a.blame.Pairs), in, p.in)
	plan := &Plan{Out: out, In: in, OutMember: a.member[out], Why: why, Figures: data(bad), Steps: steps(out, in)}
	for _, r := range p.ranked {
		plan.Ranked = append(plan.Ranked, r.String())
	}
	return plan
}
