package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
)

// Guards are the reasons, at this moment, not to begin any change of
// membership, whatever is to be changed. Unknown fails a guard. With no hosts
// in the view (observe has no agents) only the cluster's own are asked.
//
// They do not lean on etcd's own checks: its strict reconfiguration check
// counts a silent peer as connected for up to 2 min 45 s, and newer versions
// accept what older ones refused (etcd.md 0 and 1).
func Guards(in Inputs) []Refusal {
	if why := in.View.unusable(); why != "" {
		return []Refusal{hold(MembershipUnknown, "", why, "lifts when it can be read; `suffrage status` shows which voters answer")}
	}
	var out []Refusal
	for _, guard := range []func(Inputs) []Refusal{
		guardIdentity, guardVoters, guardOpinions, guardLeader, guardCount, guardLearners, guardAlarms, guardVersions,
	} {
		out = append(out, guard(in)...)
	}
	if len(in.View.Hosts) > 0 {
		out = append(out, guardRemovals(in)...)
		out = append(out, guardForeign(in)...)
		out = append(out, guardHosts(in)...)
		out = append(out, guardPairs(in)...)
	}
	sortRefusals(out)
	return out
}

// maxViewAge is how old a view may be to be decided on: it is taken within one
// round, and a cached member list is never acted on.
const maxViewAge = time.Minute

// guardView asks what only a decision needs: observe has neither hosts nor rounds.
func guardView(in Inputs) []Refusal {
	next := "see the log of the controller"
	switch age := in.Now.Sub(in.View.At); {
	case age > maxViewAge:
		return []Refusal{hold(MembershipUnknown, "", fmt.Sprintf("the view is of %s, %s old; at most %s is", stamp(in.View.At), age.Round(time.Second), maxViewAge), next)}
	case len(in.View.Hosts) == 0:
		return []Refusal{hold(MembershipUnknown, "", "the view has no hosts", next)}
	}
	return nil
}

func hold(c Code, subject, detail, next string) Refusal {
	return Refusal{Code: c, Kind: Hold, Subject: subject, Detail: detail, Next: next}
}

func owner(c Code, subject, detail, next string) Refusal {
	return Refusal{Code: c, Kind: Owner, Subject: subject, Detail: detail, Next: next}
}

// with adds the one count that a refusal rests on, beside its limit.
func (r Refusal) with(name string, value, limit int64, unit string) Refusal {
	l := fitness.Figure(limit)
	r.Figures = append([]Datum{{Name: name, Value: fitness.Figure(value), Limit: &l, Unit: unit}}, r.Figures...)
	return r
}

// voters is a number of them in words.
func voters(n int) string {
	if n == 1 {
		return "1 voter"
	}
	return fmt.Sprintf("%d voters", n)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func guardIdentity(in Inputs) []Refusal {
	v := in.View
	if v.RecordedClusterID == "" || v.RecordedClusterID == v.ClusterID {
		return nil
	}
	return []Refusal{owner(ClusterReplaced, "", fmt.Sprintf("this is cluster %s; what was recorded is of cluster %s: a restore or a reset made a new one", v.ClusterID, v.RecordedClusterID),
		"look at the members; if this cluster is the right one: suffrage cluster accept "+v.ClusterID)}
}

// guardCount asks whether there are as many voters as there should be. Where the
// owner asks for another number, or for the removal of a dead one, that there
// are not is what is to be mended, and the request has its own bounds.
func guardCount(in Inputs) []Refusal {
	n, p := len(in.View.Voters()), in.Policy
	var out []Refusal
	say := func(c Code, limit int, next, format string, args ...any) {
		out = append(out, owner(c, "", fmt.Sprintf(format, args...), next).with("voters", int64(n), int64(limit), "1"))
	}
	target := "suffrage target N, with an odd N of 3 to 7"
	if n < 3 && p.Target < 3 {
		target = "suffrage target 3"
	} else if possible(p.Target) {
		target = fmt.Sprintf("suffrage target %d", p.Target)
	}
	asked := in.Open == nil && in.Request != nil && (in.Request.Target != 0 || in.Request.Dead != "")
	switch {
	case asked && n <= fitness.MaxVoters:
	case n < 3:
		say(BelowMinimum, 3, target, "%s; nothing is moved below 3, because losing one more would lose the quorum", voters(n))
	case n > fitness.MaxVoters:
		say(TooManyVoters, fitness.MaxVoters, "etcd's guidance is at most 7: remove voters by hand", "%d voters; at most %d are judged", n, fitness.MaxVoters)
	case n > p.Target:
		say(ExtraVoter, p.Target, target, "%s, target %d", voters(n), p.Target)
	case n < p.Target:
		say(BelowTarget, p.Target, target, "%s, target %d", voters(n), p.Target)
	}
	if asked {
		return out
	}
	if p.Target%2 == 0 {
		say(EvenTarget, p.Target, "suffrage target N, with an odd N of 3 to 7", "target %d; an even number of voters tolerates no more failures than one fewer", p.Target)
	}
	if all := len(in.View.Members); all+1 > p.Maximum && n <= p.Target {
		out = append(out, owner(AtCeiling, "", fmt.Sprintf("%d members and one more would pass the maximum of %d", all, p.Maximum),
			"raise controller.maximum above the target").with("members", int64(all), int64(p.Maximum), "1"))
	}
	return out
}

// guardRemovals finds removals that nobody's operation asked for: one that was
// armed and left, or restored from a snapshot, fires when one least wants it.
func guardRemovals(in Inputs) []Refusal {
	var out []Refusal
	for _, r := range in.View.Removals {
		if in.Open == nil || r.Operation != in.Open.ID {
			out = append(out, owner(StaleRemoval, r.Host, fmt.Sprintf("the removal of its member %s is asked for since %s, by operation %s, which is not open", r.Member, stamp(r.At), r.Operation),
				"suffrage operations withdraw "+r.Host))
		}
	}
	return out
}

// guardForeign keeps out of the way of another controller that adds and removes
// members: two of them each undo what the other does.
func guardForeign(in Inputs) []Refusal {
	var out []Refusal
	for _, f := range in.View.Foreign {
		out = append(out, owner(ForeignController, f.Host, fmt.Sprintf("%s manages etcd's members too: on Node %s %s", f.Who, f.Host, f.Sign),
			"let one of the two do it: suffrage mode dry-run, or take the host out of the other (docs/refusals.md#foreign-controller)"))
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

// guardAlarms gives one refusal per kind of alarm: each has its own cure. They
// are the owner's, since no alarm of etcd's goes away by itself.
func guardAlarms(in Inputs) []Refusal {
	var out []Refusal
	named := map[string][]string{}
	for _, a := range in.View.Alarms {
		named[a.Kind] = append(named[a.Kind], a.Member)
	}
	for kind, members := range named {
		// The member in a CORRUPT alarm may be the wrong one: no host is named.
		next := "free space (compact, defragment, raise the quota), then: etcdctl alarm disarm"
		if kind != "NOSPACE" {
			next = "do not move anything; find the damaged member by comparing hashes (docs/refusals.md#alarm)"
		}
		slices.Sort(members)
		out = append(out, owner(AlarmRaised, kind, "etcd names member "+strings.Join(slices.Compact(members), ", "), next))
	}
	if in.View.Downgrade != "" {
		out = append(out, hold(DowngradeOpen, "", "a downgrade to "+in.View.Downgrade+" is open", "lifts when it has ended, or: etcdctl downgrade cancel"))
	}
	return out
}
