package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxLag is how many entries a voter may be behind before it counts as
// unhealthy: from there etcd would send it a whole snapshot (its
// DefaultSnapshotCatchUpEntries), and it no longer backs up the others.
const maxLag = 5000

func guardVoters(in Inputs) []Refusal {
	var out []Refusal
	var top uint64
	for _, m := range in.View.Voters() {
		top = max(top, m.RaftIndex)
	}
	for _, m := range in.View.Voters() {
		lag := top - m.RaftIndex
		switch {
		case !m.Started():
			out = append(out, owner(UnstartedMember, m.ID, "a voter at "+strings.Join(m.PeerURLs, ", ")+" has never started; it counts for quorum",
				"start its etcd, or remove it: etcdctl member remove "+m.ID))
		case !m.Responding:
			out = append(out, silent(in, m.Label(), "its etcd member does not answer: "+m.Error, m.Since,
				fmt.Sprintf("bring %s back; or, if it is gone for good: suffrage remove-dead %[1]s (docs/refusals.md#voter-down)", m.Label())))
		case lag > maxLag:
			out = append(out, hold(VoterLagging, m.Label(), fmt.Sprintf("%d entries behind the newest voter, limit %d", lag, maxLag), "lifts when it has caught up").
				with("raft_lag", int64(min(lag, 1<<62)), maxLag, "1"))
		}
		// An alarm is among the errors of every member's status, and has its own code.
		if m.Responding && len(m.StatusErrors) > 0 && len(in.View.Alarms) == 0 {
			out = append(out, hold(VoterUnhealthy, m.Label(), "its etcd reports: "+strings.Join(m.StatusErrors, "; "), "see the log of its etcd"))
		}
	}
	return out
}

// silent is a voter that does not answer: a hold at first, since it may be
// rebooting, and the owner's case once it has lasted a window. It is never a
// reason to swap: adding while a voter is away risks the quorum.
func silent(in Inputs, host, detail string, since time.Time, next string) Refusal {
	since = awaySince(in, host, since)
	if !since.IsZero() && in.Now.Sub(since) > in.Policy.Window() {
		return owner(VoterDown, host, detail+"; since "+stamp(since), next)
	}
	return hold(VoterNotResponding, host, detail, "lifts when it answers again; after a window it is the owner's case (voter-down)")
}

// awaySince is since when a voter has been silent: for as long as whoever looks
// has seen it, or as is written down, whichever is longer. A command, and a
// controller that has just taken over, have seen next to nothing.
func awaySince(in Inputs, host string, seen time.Time) time.Time {
	if in.Previous == nil {
		return seen
	}
	for _, p := range in.Previous.Refusals {
		if t := earlier(p.Since, in.Now); p.Subject == host && dated(p.Code) == VoterNotResponding && (seen.IsZero() || t.Before(seen)) {
			seen = t
		}
	}
	return seen
}

// guardOpinions asks whether every voter has the list that the quorum has. One
// that has not told its list is not taken to agree.
func guardOpinions(in Inputs) []Refusal {
	var out []Refusal
	list := opinion(in.View.Members)
	for _, m := range responding(in.View) {
		said := m.Opinion
		if !slices.IsSorted(said) {
			said = slices.Sorted(slices.Values(said))
		}
		if !slices.Equal(said, list) {
			out = append(out, hold(MembershipDisagrees, m.Label(), fmt.Sprintf("it lists members [%s]; the quorum lists [%s]", strings.Join(said, " "), strings.Join(list, " ")),
				"lifts when all voters have applied the last change"))
		}
	}
	return out
}

// guardLeader asks whether the voters name one leader, and one that votes.
func guardLeader(in Inputs) []Refusal {
	voters, leader := responding(in.View), in.View.Leader()
	if len(voters) == 0 || slices.ContainsFunc(in.View.Voters(), func(m Member) bool { return m.ID == leader }) {
		return nil
	}
	names := make([]string, 0, len(voters))
	for _, m := range voters {
		l := m.Leader
		if l == "" {
			l = "nobody"
		}
		names = append(names, m.Label()+" says "+l)
	}
	return []Refusal{hold(NoLeader, "", "the voters do not name one voter as leader: "+strings.Join(names, ", "), "lifts when an election has ended")}
}

// responding are the voters that answer, to be read only.
func responding(v View) []Member {
	voters, silent := v.Voters(), func(m Member) bool { return !m.Responding }
	if !slices.ContainsFunc(voters, silent) {
		return voters
	}
	return slices.DeleteFunc(slices.Clone(voters), silent)
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

// guardVersions asks for one version on all voters, and for one that keeps its
// membership. A skew names those that differ from the voter of the lowest ID.
func guardVersions(in Inputs) []Refusal {
	var out []Refusal
	voters, why := responding(in.View), ""
	for i, m := range voters {
		if i == 0 || m.Version != voters[i-1].Version {
			why = unsafe(m.Version)
		}
		if why != "" {
			out = append(out, owner(UnsafeVersion, m.Label(), fmt.Sprintf("etcd %q: %s", m.Version, why), "upgrade etcd on "+m.Label()))
		}
		if first := voters[0].Version; m.Version != first && m.Version != "" {
			out = append(out, hold(VersionSkew, m.Label(), fmt.Sprintf("etcd %s beside %s on %s", m.Version, first, voters[0].Label()), "lifts when all voters run the same version"))
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
		return "this version cannot be read"
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
