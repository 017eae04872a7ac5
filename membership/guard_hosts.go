package membership

import (
	"fmt"
	"strings"

	"suffrage/fitness"
)

// guardHosts asks whether every voter is on a host of its own that the owner
// knows and whose agent answers. A voter that is on none would be measured by
// nobody and yet count for quorum.
func guardHosts(in Inputs) []Refusal {
	var out []Refusal
	unmapped := func(m Member, detail, next string) { out = append(out, owner(MemberUnmapped, m.Label(), detail, next)) }
	on := make(map[string]string, len(in.View.Members)) // host → member ID
	for _, m := range in.View.Voters() {
		h, known := in.View.HostNamed(m.Host)
		first, twice := on[m.Host]
		switch {
		case m.Host == "":
			unmapped(m, "no host of the roster has its peer address "+strings.Join(m.PeerURLs, ", "), "add the host to the roster, or give the member the host's mesh address")
		case !known:
			unmapped(m, fmt.Sprintf("member %s is on host %s, which is not in the roster", m.ID, m.Host), "add the host to the roster")
		case twice:
			unmapped(m, fmt.Sprintf("members %s and %s both vote on it; a host holds one vote", first, m.ID), "move one of them to a host of its own")
		case !h.Reachable && m.Responding:
			out = append(out, silent(in, m.Host, "its agent does not answer: "+h.Error, h.Since, "bring the agent on "+m.Host+" back (docs/refusals.md#voter-down)"))
		}
		on[m.Host] = m.ID
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
		h, _ := in.View.HostNamed(m.Host)
		up[m.Host] = h.Reachable
	}
	worst := map[string]*fitness.Reading{}
	for i := range in.Readings {
		r := &in.Readings[i]
		if !cutOff(r) || !up[r.Host] || !up[r.Peer] {
			continue
		}
		pair := min(r.Host, r.Peer) + "," + max(r.Host, r.Peer)
		if w := worst[pair]; w == nil || r.LostNow > w.LostNow || (r.LostNow == w.LostNow && r.Host < w.Host) {
			worst[pair] = r
		}
	}
	var out []Refusal
	for pair, r := range worst {
		out = append(out, unreachable(pair, r))
	}
	return out
}

// cutOff reports whether the newest pings of a pair were lost.
func cutOff(r *fitness.Reading) bool {
	return r != nil && r.Signal == fitness.RTT && r.LostNow >= lostInARow
}

func unreachable(pair string, r *fitness.Reading) Refusal {
	ref := hold(PairUnreachable, pair, fmt.Sprintf("the last %d pings from %s to %s were lost", r.LostNow, r.Host, r.Peer),
		"lifts when they reach each other; check the path and the firewall between them").with("lost_in_a_row", int64(r.LostNow), lostInARow, "1")
	ref.Figures[0].Peer = r.Peer
	return ref
}
