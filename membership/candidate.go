package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"suffrage/fitness"
)

// candidates are the hosts that the owner allows a vote and that have no
// member, sorted.
func (a *assessment) candidates() []string {
	var out []string
	for _, name := range a.names {
		if a.hosts[name].Mark.IsEligible() && !a.listed[name] {
			out = append(out, name)
		}
	}
	return out
}

// vacancy is the place that a suspect would leave; where nobody leaves, the
// suspect has no name.
type vacancy struct {
	fitness.Suspect
	// beside are the voters that a candidate is judged beside: those that stay,
	// without those that are certainly to blame themselves, since a slow pair
	// with a slow voter says nothing of the candidate. (fitness.md asks a
	// candidate to be fast to every voter that would remain; with two slow voters
	// of five no candidate ever would be, and the fleet would keep both. That the
	// swap clears more pairs than it makes is asked all the same.)
	beside []string
	zones  map[string]int // the zones of all that stay
}

func (a *assessment) vacancy(s fitness.Suspect) vacancy {
	v := vacancy{Suspect: s, beside: without(a.voters, append([]string{s.Host}, a.blame.Certain...)), zones: map[string]int{}}
	if s.Host == "" {
		v.beside = without(v.beside, a.witnessed())
	}
	for _, h := range a.voters {
		if zone := a.hosts[h].Facts.Zone; h != s.Host && zone != "" {
			v.zones[zone]++
		}
	}
	return v
}

// witnessed are the voters that hosts outside find slow. Of two voters that are
// slow with each other none is certainly to blame; and since it cannot be moved
// before there are three, it must not keep out the third.
func (a *assessment) witnessed() []string {
	var out []string
	for _, s := range a.blame.Suspects {
		if s.By == "witnesses" {
			out = append(out, s.Host)
		}
	}
	return out
}

// crowd is the largest number of voters in one zone once one in that zone has
// come. Hosts without a zone share with nobody.
func (v vacancy) crowd(zone string) int {
	most := 0
	if zone != "" {
		most = v.zones[zone] + 1
	}
	for _, n := range v.zones {
		most = max(most, n)
	}
	return most
}

// stand gives what a host is ranked by if it may take a suspect's vote, or what
// is in the way.
func (a *assessment) stand(host string, out vacancy) (fitness.Standing, *Refusal) {
	h := a.hosts[host]
	refuse := func(r Refusal) (fitness.Standing, *Refusal) {
		r.Subject = cmp.Or(r.Subject, host)
		take := "take the vote of " + out.Host
		if out.Host == "" {
			take = "get a vote"
		}
		r.Detail = fmt.Sprintf("cannot %s: %s", take, r.Detail)
		return fitness.Standing{}, &r
	}
	seen := "see `suffrage explain " + host + "` and the log of its agent"
	if !h.Reachable {
		return refuse(hold(NoCandidate, "", "its agent does not answer: "+h.Error, "lifts when it answers"))
	}
	if missing := unqualified(h); missing != "" {
		return refuse(owner(NotQualified, "", missing, seen))
	}
	for _, v := range a.voters {
		if s := a.hosts[v].Software; s != "" && h.Software != s {
			return refuse(owner(VersionSkew, "", fmt.Sprintf("it runs suffrage %s, voter %s runs %s", h.Software, v, s), "install the voters' version on "+host))
		}
	}
	if r := a.otherK3s(h); r != nil {
		return refuse(*r)
	}
	if a.unarmed(host) {
		return refuse(owner(NotQualified, "", "its agent runs no etcd server, so it cannot be made a voter", "set agent.unit on "+host))
	}
	if p := h.Facts.Prepared; p != nil && !p.Ready {
		return refuse(owner(NotQualified, "", "it is not prepared: "+some(p.Lacks, 3), "suffrage standby check on "+host))
	}
	if s := h.Facts.Server; s != nil && s.Datastore {
		return refuse(owner(DatastorePresent, "", aDatastore, "move it aside on "+host))
	}
	if r := h.notReady(); r != nil {
		return refuse(*r)
	}
	if until, why := a.quarantined(host); a.in.Now.Before(until) {
		return refuse(hold(Quarantine, "", why+"; it is left alone until "+stamp(until), "lifts then, or: suffrage clear-quarantine "+host))
	}
	if need := 2 * a.database; h.Facts.DiskFree < need {
		free := fitness.Figure(h.Facts.DiskFree)
		return refuse(owner(DiskSpace, "", fmt.Sprintf("%s free, twice the database is %s", free.Text("B"), fitness.Figure(need).Text("B")), "free space on "+host).
			with("disk_free", h.Facts.DiskFree, need, "B"))
	}
	evidence := a.evidence(host, out.beside)
	// It joins through the leader and will serve all that remain, the slow ones
	// among them, so it has to reach each of these whatever it is judged beside.
	for _, v := range a.voters {
		if v == out.Host && v != a.leader {
			continue
		}
		if r := a.with(host, v).cut(); r != nil {
			return refuse(unreachable(host+","+v, r))
		}
		if v == a.leader && !slices.Contains(out.beside, v) {
			if r := a.pair(host, v); r.Band == fitness.Unknown {
				evidence = append(evidence, *r)
			}
		}
	}
	fitWhole := "lifts when it has been fit for a whole window"
	switch v := fitness.Judge(host, evidence); {
	case v.Status == fitness.StatusUnknown:
		r := hold(SamplesMissing, "", "", windowsFull)
		return refuse(r.about(only(evidence, notUnder), 3))
	case v.Status != fitness.Fit:
		r := hold(NoCandidate, "", v.String(), fitWhole)
		r.Figures = data(only(evidence, notUnder))
		return refuse(r)
	case !v.Whole:
		return refuse(notHeld("", v, fitWhole))
	}
	// Where nobody leaves, a voter that is slow with all would keep everybody out.
	if left, before := a.left(host, out.Suspect), len(a.blame.Pairs); out.Host != "" && (left > before || left == before && out.By != "own" && out.By != byRequest) {
		return refuse(hold(NoCandidate, "", fmt.Sprintf("it is slow with other voters too: %d pairs would violate, as many as now or more", left), fitWhole).
			with("violating_pairs", int64(left), int64(before), "1"))
	}
	return a.standing(host, out), nil
}

// otherK3s: K3s brings its etcd with it, and a newer one would begin an upgrade that
// nobody asked for. Voters that do not tell theirs are not asked.
func (a *assessment) otherK3s(h *Host) *Refusal {
	for _, v := range a.voters {
		theirs, has := a.hosts[v].Facts.K3s, cmp.Or(h.Facts.K3s, "of a version that its agent does not tell")
		if theirs != "" && has != theirs {
			r := owner(VersionSkew, "", fmt.Sprintf("its K3s is %s, that of voter %s is %s, and its etcd comes with it", has, v, theirs), "install the voters' version of K3s on "+h.Name)
			return &r
		}
	}
	return nil
}

// unarmed: Suffrage is to act, and has no hands on this host. In dry-run that
// is no reason not to say what should be done; of an agent that does not answer
// nobody knows, and that is said already.
func (a *assessment) unarmed(host string) bool {
	h := a.hosts[host]
	return a.in.Policy.Mode == Active && h.Reachable && h.Facts.Server == nil
}

// some are the first of many texts.
func some(texts []string, most int) string {
	if more := len(texts) - most; more > 0 {
		return strings.Join(texts[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(texts, "; ")
}

// unqualified names the kinds of evidence that the host has not given: a vote
// goes only to a host that was measured itself, not one like it.
func unqualified(h *Host) string {
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

// left counts the pairs that would violate once the suspect's vote is the host's.
func (a *assessment) left(host string, out fitness.Suspect) int {
	n := len(a.blame.Pairs) - out.Clears
	for _, v := range a.voters {
		if v != out.Host && a.slow(host, v, 0) {
			n++
		}
	}
	return n
}

func (a *assessment) standing(host string, out vacancy) fitness.Standing {
	h := a.hosts[host]
	s := fitness.Standing{Host: host, Link: h.Facts.Link.Class, Crowd: out.crowd(h.Facts.Zone)}
	for _, p := range h.Facts.Paths {
		if p.Kind == "relayed" && slices.Contains(out.beside, p.Peer) {
			s.Relayed = true
		}
	}
	for _, v := range out.beside {
		s.WorstRTT = max(s.WorstRTT, a.with(host, v).worst())
	}
	for _, r := range a.of(host).own {
		switch {
		case r == nil: // it votes and is to lose its vote; a candidate that is fit has them all
		case r.Signal == fitness.WALFsync:
			s.WAL = r.Figure
		case r.Signal == fitness.Memory:
			s.Headroom = r.Figure - r.Limit.Candidate
		}
	}
	return s
}
