package membership

import (
	"fmt"

	"suffrage/fitness"
)

// Verb is one thing that is done. The list is closed: whoever carries acts out
// knows these and nothing else.
type Verb string

const (
	// SaveSnapshot: the host saves and verifies a snapshot for the operation.
	SaveSnapshot Verb = "save-snapshot"
	// AddLearner: etcd adds the host's peer URL as a learner.
	AddLearner Verb = "add-learner"
	// StartMember: the host clears its fence, writes its role and the members to
	// join, and starts its etcd.
	StartMember Verb = "start-member"
	// Promote: etcd makes the learner a voter, if it has caught up.
	Promote Verb = "promote"
	// MoveLeader: etcd's leader hands over to the member.
	MoveLeader Verb = "move-leader"
	// Fence: no start of the host's etcd is possible any more; one that runs goes
	// on. Proven by a start that is refused.
	Fence Verb = "fence"
	// Unfence lifts the fence.
	Unfence Verb = "unfence"
	// AnnounceRemoval writes the same annotation, to be acted on only once it is
	// requested: the hosts' datastore endpoints lead their clients off meanwhile.
	AnnounceRemoval Verb = "announce-removal"
	// RequestRemoval asks for the member's removal by an annotation on its host.
	RequestRemoval Verb = "request-removal"
	// WithdrawRemoval takes the annotation back.
	WithdrawRemoval Verb = "withdraw-removal"
	// RemoveMember: etcd removes the operation's own newcomer. Voters from before
	// are removed by RequestRemoval only.
	RemoveMember Verb = "remove-member"
	// Retire: the host stops its etcd, moves the datastore aside and is a standby.
	Retire Verb = "retire"
	// Regrade: the host's server is started again with the grade, where it does not
	// run with it already.
	Regrade Verb = "regrade"
	// Finish records the operation and ends it.
	Finish Verb = "finish"
	// Wait: nothing is done but to look again.
	Wait Verb = "wait"
)

// Act is the next thing to do for the open operation.
type Act struct {
	Verb Verb `json:"verb"`
	// Step is the step of the plan that it belongs to, "turn-back" on the way back.
	Step string `json:"step"`
	// Host is the host that it concerns; Member the ID of a member.
	Host   string `json:"host,omitempty"`
	Member string `json:"member,omitempty"`
	// Peer is the peer URL of a member.
	Peer string `json:"peer,omitempty"`
	// To is the grade of Regrade.
	To fitness.Grade `json:"to,omitempty"`
	// Outcome is of Finish.
	Outcome Outcome `json:"outcome,omitempty"`
	// Why is said in logs and by status.
	Why string `json:"why"`
}

// String is "fence h3: it must not start again".
func (a Act) String() string {
	s := string(a.Verb)
	if a.Host != "" {
		s += " " + a.Host
	}
	return fmt.Sprintf("%s: %s", s, a.Why)
}

// Changes reports whether the act changes anything outside the journal.
func (a Act) Changes() bool { return a.Verb != Wait && a.Verb != Finish }
