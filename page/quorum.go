package page

import (
	"fmt"
	"strings"

	"suffrage/fitness"
	"suffrage/membership"
)

// The states of a Quorum. Stable.
const (
	QuorumSafe    = "safe"    // a voter can be lost
	QuorumEdge    = "edge"    // it works, and the next loss may stop all writes
	QuorumLost    = "lost"    // too few voters answer
	QuorumUnknown = "unknown" // the member list could not be read, or windows still fill
)

// Quorum says whether the cluster goes on when voters are lost.
type Quorum struct {
	// State is safe, edge, lost or unknown.
	State string `json:"state"`
	// Text is the state in one sentence.
	Text string `json:"text"`
	// Voters are counted in the member list, Target is how many are wanted, Needed
	// how many must agree, Responding how many answer, Fit how many of those are fit or
	// marginal, and Tolerance how many more can be lost, counted on the fit ones.
	Voters     int `json:"voters"`
	Target     int `json:"target"`
	Needed     int `json:"needed"`
	Responding int `json:"responding"`
	Fit        int `json:"fit"`
	Tolerance  int `json:"tolerance"`
}

func quorumOf(l Look) Quorum {
	v, d := l.Inputs.View, l.Decision
	q := Quorum{Voters: d.Voters, Target: l.Inputs.Policy.Target, Needed: membership.Quorum(d.Voters), Fit: d.FitVoters, Tolerance: d.Tolerance}
	var silent, unjudged []string
	for _, m := range v.Voters() {
		if !m.Responding {
			silent = append(silent, m.Label())
			continue
		}
		q.Responding++
		if verdictOf(d, m.Host).Status == fitness.StatusUnknown {
			unjudged = append(unjudged, m.Label())
		}
	}
	switch {
	case q.Voters == 0:
		q.Needed = 0
		q.State, q.Text = QuorumUnknown, "The member list cannot be read: "+v.Error
	case v.Error != "" && q.Responding < q.Needed:
		q.State, q.Text = QuorumLost, fmt.Sprintf("%d of %d voters answer, %d are needed: nothing can be written.", q.Responding, q.Voters, q.Needed)
	case v.Error != "":
		q.State, q.Text = QuorumUnknown, "The member list could not be read through a quorum: "+v.Error
	case q.Tolerance > 0:
		q.State, q.Text = QuorumSafe, fmt.Sprintf("Can lose %d more.", q.Tolerance)
	case len(silent) > 0:
		q.State, q.Text = QuorumEdge, fmt.Sprintf("%s does not answer: losing one more may stop all writes.", strings.Join(silent, ", "))
	case q.Voters < 3:
		q.State, q.Text = QuorumEdge, "Too few voters: losing one stops all writes."
	case len(unjudged) > 0:
		q.State, q.Text = QuorumUnknown, fmt.Sprintf("All answer; not judged yet: %s.", strings.Join(unjudged, ", "))
	case q.Fit < q.Needed:
		q.State, q.Text = QuorumEdge, fmt.Sprintf("All answer, %d of %d are fit: losing any may stop all writes.", q.Fit, q.Voters)
	default:
		q.State, q.Text = QuorumEdge, fmt.Sprintf("All answer, %d of %d are fit: losing one of those may stop all writes.", q.Fit, q.Voters)
	}
	return q
}
