package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
)

// maxLag is how many entries a voter may be behind before it counts as
// unhealthy: from there etcd would send it a whole snapshot (its
// DefaultSnapshotCatchUpEntries), and it no longer backs up the others.
const maxLag = 5000

// Guards are the reasons, at this moment, not to begin any change of
// membership, whatever is to be changed. Unknown fails a guard. With no hosts
// in the view (observe has no agents) only the cluster's own are asked.
//
// They do not lean on etcd's own checks: its strict reconfiguration check
// counts a silent peer as connected for up to 2 min 45 s, and newer versions
// accept what older ones refused (etcd.md 0 and 1).
func Guards(in Inputs) []Refusal {
	v := in.View
	if v.Error != "" {
		// Without a quorum read nothing else that was seen can be relied on.
		return []Refusal{hold(MembershipUnknown, "", "the member list could not be read through a quorum: "+v.Error,
			"restore contact with a majority of the voters; `suffrage status` shows which answer")}
	}
	var out []Refusal
	for _, guard := range []func(Inputs) []Refusal{
		guardIdentity, guardVoters, guardAgreement, guardCount, guardLearners, guardAlarms, guardVersions, guardHosts, guardPairs,
	} {
		out = append(out, guard(in)...)
	}
	return out
}

func hold(c Code, subject, detail, next string) Refusal {
	return Refusal{Code: c, Kind: Hold, Subject: subject, Detail: detail, Next: next}
}

func owner(c Code, subject, detail, next string) Refusal {
	return Refusal{Code: c, Kind: Owner, Subject: subject, Detail: detail, Next: next}
}

func guardIdentity(in Inputs) []Refusal {
	v := in.View
	if v.RecordedClusterID == "" || v.RecordedClusterID == v.ClusterID {
		return nil
	}
	return []Refusal{owner(ClusterReplaced, "", fmt.Sprintf("this is cluster %s; what was recorded is of cluster %s: a restore or a reset made a new one", v.ClusterID, v.RecordedClusterID),
		"look at the members; if this cluster is the right one: suffrage cluster accept "+v.ClusterID)}
}

func guardVoters(in Inputs) []Refusal {
	var out []Refusal
	var top uint64
	for _, m := range in.View.Voters() {
		top = max(top, m.RaftIndex)
	}
	for _, m := range in.View.Voters() {
		switch {
		case !m.Started():
			out = append(out, owner(UnstartedMember, m.ID, "a voter at "+strings.Join(m.PeerURLs, ", ")+" has never started; it counts for quorum",
				"start its etcd, or remove it: etcdctl member remove "+m.ID))
		case !m.Responding:
			out = append(out, silent(in, m.Label(), "its etcd member does not answer: "+m.Error, m.Since))
		case m.RaftIndex+maxLag < top:
			r := hold(VoterLagging, m.Label(), fmt.Sprintf("%d entries behind the newest voter, limit %d", top-m.RaftIndex, maxLag), "wait until it has caught up")
			limit := fitness.Figure(maxLag)
			r.Figures = []Datum{{Name: "raft_lag", Value: fitness.Figure(top - m.RaftIndex), Limit: &limit, Unit: "1"}}
			out = append(out, r)
		}
	}
	return out
}

// silent is a voter that does not answer: a hold at first, since it may be
// rebooting, and the owner's case once it has lasted a window. It is never a
// reason to swap: adding while a voter is away risks the quorum.
func silent(in Inputs, host, detail string, since time.Time) Refusal {
	if !since.IsZero() && in.Now.Sub(since) > in.Policy.Window() {
		return owner(VoterDown, host, detail, fmt.Sprintf("bring %s back; or, if it is gone for good, remove its member and add another by hand (docs/refusals.md#voter-down)", host))
	}
	return hold(VoterNotResponding, host, detail, "lifts when it answers again; after a window it is the owner's case (voter-down)")
}

func guardAgreement(in Inputs) []Refusal {
	var out []Refusal
	voters := responding(in.View)
	if len(voters) == 0 {
		return nil
	}
	list := opinion(in.View.Members)
	for _, m := range voters {
		if m.Opinion != nil && !slices.Equal(m.Opinion, list) {
			out = append(out, hold(MembershipDisagrees, m.Label(), fmt.Sprintf("it lists members %s; the quorum lists %s", strings.Join(m.Opinion, " "), strings.Join(list, " ")),
				"lifts when all voters have applied the last change"))
		}
		if len(m.StatusErrors) > 0 {
			out = append(out, hold(VoterNotResponding, m.Label(), "it reports: "+strings.Join(m.StatusErrors, "; "), "see the log of its etcd"))
		}
	}
	if in.View.Leader() == "" {
		names := make([]string, 0, len(voters))
		for _, m := range voters {
			l := m.Leader
			if l == "" {
				l = "nobody"
			}
			names = append(names, m.Label()+" says "+l)
		}
		out = append(out, hold(NoLeader, "", "the voters do not name one leader: "+strings.Join(names, ", "), "lifts when an election has ended"))
	}
	return out
}

func responding(v View) []Member {
	return slices.DeleteFunc(v.Voters(), func(m Member) bool { return !m.Responding })
}

// opinion is a member list in the form of Member.Opinion.
func opinion(members []Member) []string {
	ids := make([]string, 0, len(members))
	for _, m := range members {
		id := m.ID
		if m.Learner {
			id += "?"
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func guardCount(in Inputs) []Refusal {
	n, p := len(in.View.Voters()), in.Policy
	var out []Refusal
	limit := func(r Refusal, v int) Refusal {
		l := fitness.Figure(v)
		r.Figures = []Datum{{Name: "voters", Value: fitness.Figure(n), Limit: &l, Unit: "1"}}
		return r
	}
	switch {
	case n < 3:
		out = append(out, limit(owner(BelowMinimum, "", fmt.Sprintf("%d voters; nothing is moved below 3, because losing one more would lose the quorum", n),
			"add voters by hand until there are 3"), 3))
	case n > fitness.MaxVoters:
		out = append(out, limit(owner(TooManyVoters, "", fmt.Sprintf("%d voters; at most %d are judged", n, fitness.MaxVoters), "etcd's guidance is at most 7: remove voters by hand"), fitness.MaxVoters))
	case n > p.Target:
		out = append(out, limit(owner(ExtraVoter, "", fmt.Sprintf("%d voters, target %d", n, p.Target),
			"remove the extra voter by hand, or set controller.target to what you want"), p.Target))
	case n < p.Target:
		out = append(out, limit(owner(BelowTarget, "", fmt.Sprintf("%d voters, target %d", n, p.Target),
			"add a voter by hand, or set controller.target to what you want"), p.Target))
	}
	if all := len(in.View.Members); all+1 > p.Maximum && n <= p.Target {
		r := owner(AtCeiling, "", fmt.Sprintf("%d members and one more would pass the maximum of %d", all, p.Maximum), "raise controller.maximum above the target")
		out = append(out, limit(r, p.Maximum))
	}
	return out
}

func guardLearners(in Inputs) []Refusal {
	var out []Refusal
	for _, m := range in.View.Members {
		if m.Learner {
			out = append(out, hold(LearnerPresent, m.Label(), "a learner is being added by somebody; etcd allows one at a time",
				"lifts when it is promoted or removed by whoever added it"))
		}
	}
	return out
}

func guardAlarms(in Inputs) []Refusal {
	var out []Refusal
	for _, a := range in.View.Alarms {
		// The member in a CORRUPT alarm may be the wrong one: no host is named.
		next := "free space (compact, defragment, raise the quota), then: etcdctl alarm disarm"
		if a.Kind != "NOSPACE" {
			next = "do not move anything; find the damaged member by comparing hashes (docs/refusals.md#alarm)"
		}
		out = append(out, owner(AlarmRaised, "", fmt.Sprintf("%s is raised (etcd names member %s)", a.Kind, a.Member), next))
	}
	if in.View.Downgrade != "" {
		out = append(out, hold(DowngradeOpen, "", "a downgrade to "+in.View.Downgrade+" is open", "lifts when it has ended, or: etcdctl downgrade cancel"))
	}
	return out
}

func guardVersions(in Inputs) []Refusal {
	var out []Refusal
	first := ""
	for _, m := range responding(in.View) {
		if why := unsafe(m.Version); why != "" {
			out = append(out, owner(UnsafeVersion, m.Label(), "etcd "+m.Version+": "+why, "upgrade etcd on "+m.Label()))
		}
		switch {
		case first == "":
			first = m.Version
		case m.Version != first:
			out = append(out, hold(VersionSkew, m.Label(), fmt.Sprintf("etcd %s beside %s", m.Version, first), "lifts when all voters run the same version"))
		}
	}
	return out
}

// unsafe says what is wrong with a version of etcd, or nothing. The bounds are
// those of the faults in its membership store: promotions not persisted
// (3.5.1–3.5.19), removed members that come back (before 3.5.26 and 3.6.4),
// reads that are stale after a pause (fixed in 3.6.9; one more is asked for, so
// that nothing rests on which side of it the fix is).
func unsafe(version string) string {
	var major, minor, patch int
	if n, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n != 3 || err != nil {
		return "its version cannot be read"
	}
	switch {
	case major != 3 || minor < 5:
		return "only 3.5 and later are known to be safe for membership changes"
	case minor == 5 && patch < 26:
		return "before 3.5.26 a promotion can be lost and a removed member can come back"
	case minor == 6 && patch < 10:
		return "before 3.6.10 a removed member can come back and reads can be stale after a pause"
	}
	return ""
}

// guardHosts asks whether the hosts are the ones that the owner knows.
func guardHosts(in Inputs) []Refusal {
	if len(in.View.Hosts) == 0 {
		return nil
	}
	var out []Refusal
	for _, m := range in.View.Voters() {
		if m.Host == "" {
			out = append(out, owner(MemberUnmapped, m.Label(), "no host of the roster has its peer address "+strings.Join(m.PeerURLs, ", "),
				"add the host to the roster, or give the member the host's mesh address"))
			continue
		}
		if h, ok := in.View.HostNamed(m.Host); ok && !h.Reachable && m.Responding {
			out = append(out, silent(in, m.Host, "its agent does not answer: "+h.Error, h.Since))
		}
	}
	return out
}

// lostInARow is how many pings must have been lost in a row for a pair to count
// as cut off now: one or two are what a lossy link does.
const lostInARow = 3

// guardPairs asks whether all voters see each other. A pair with a voter that
// does not answer at all is that voter's symptom and is left out.
func guardPairs(in Inputs) []Refusal {
	up := map[string]bool{}
	for _, m := range responding(in.View) {
		if h, ok := in.View.HostNamed(m.Host); ok && h.Reachable {
			up[m.Host] = true
		}
	}
	worst := map[string]fitness.Reading{}
	for _, r := range in.Readings {
		if r.Signal != fitness.RTT || !up[r.Host] || !up[r.Peer] || r.LostNow < lostInARow {
			continue
		}
		key := min(r.Host, r.Peer) + "," + max(r.Host, r.Peer)
		if w, ok := worst[key]; !ok || r.LostNow > w.LostNow || (r.LostNow == w.LostNow && r.Host < w.Host) {
			worst[key] = r
		}
	}
	var out []Refusal
	for key, r := range worst {
		ref := hold(PairUnreachable, key, fmt.Sprintf("the last %d pings from %s to %s were lost", r.LostNow, r.Host, r.Peer),
			"lifts when they reach each other; check the path and the firewall between them")
		limit := fitness.Figure(lostInARow)
		ref.Figures = []Datum{{Name: "lost_in_a_row", Value: fitness.Figure(r.LostNow), Limit: &limit, Unit: "1", Peer: r.Peer}}
		out = append(out, ref)
	}
	return out
}
