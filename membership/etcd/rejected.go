package etcd

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"suffrage/membership/control"
)

// A change of the membership ends in one of three ways: nil, it is so; a
// RejectedError, nothing was changed; control.ErrUnknown, nobody knows. There is
// no fourth, and whatever is not known to be a rejection is unknown.
var (
	// ErrRejected is what a RejectedError is.
	ErrRejected = errors.New("etcd: rejected, nothing was changed")

	// Our own reasons, before anything was sent.

	// ErrLeads: a leader that is removed stops without handing over, and costs
	// everybody an election (etcd.md 7, 26).
	ErrLeads = errors.New("it is the leader of etcd: leadership has to move first")
	// ErrSilent: a voter that would remain did not answer on a connection made
	// for it. etcd's own check would not notice a host that vanished for 2 min
	// 45 s, and a frozen process never (etcd.md 0).
	ErrSilent = errors.New("a voter that would remain does not answer")
	// ErrTooFew: there would be fewer than three voters.
	ErrTooFew = errors.New("fewer than 3 voters would be left")
	// ErrAlive: only what does not answer is removed as dead.
	ErrAlive = errors.New("it answers, so it is not dead")
	// ErrNoVote: a learner is never removed as a dead voter.
	ErrNoVote = errors.New("it is a learner and holds no vote")
	// ErrLastVoter: it is the only one.
	ErrLastVoter = errors.New("it is the last voter")
	// ErrNotSent: no voter could be asked.
	ErrNotSent = errors.New("it could not be sent")
	// ErrSameSecond: member IDs are made of the peer URL and the second, and a
	// removed ID is dead for ever (etcd.md 25).
	ErrSameSecond = errors.New("etcd made the newcomer the same ID as the member that was just removed")
)

// RejectedError is a change that was not made, and why.
type RejectedError struct {
	Op      string // what was asked, such as "promote"
	Subject string // the member's ID, or the peer URL of a newcomer
	// Err is one of the reasons above, or etcd's own (package rpctypes).
	Err error
	// Detail is the names and figures of our own reasons.
	Detail string
	// Retry is true when time alone may lift it: the same can be asked again
	// after a new look.
	Retry bool
}

func (e *RejectedError) Error() string {
	s := fmt.Sprintf("etcd: %s %s: %v", e.Op, e.Subject, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap gives both that it was rejected and why.
func (e *RejectedError) Unwrap() []error { return []error{ErrRejected, e.Err} }

// errForLearners has no name of its own in rpctypes.
var errForLearners = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// rejections are etcd's answers that come before a change enters its log, or
// instead of applying it (etcdserver/server.go and membership/cluster.go of
// 3.7). The value is whether time alone may lift it. Anything else, "request
// timed out" and "leader changed" among them, may come after the change was
// proposed.
var rejections = map[error]bool{
	rpctypes.ErrMemberExist:            false,
	rpctypes.ErrPeerURLExist:           false,
	rpctypes.ErrMemberBadURLs:          false,
	rpctypes.ErrMemberNotFound:         false,
	rpctypes.ErrMemberNotLearner:       false,
	rpctypes.ErrMemberNotEnoughStarted: true,
	rpctypes.ErrMemberLearnerNotReady:  true, // it catches up
	rpctypes.ErrTooManyLearners:        false,
	rpctypes.ErrUnhealthy:              true, // also within 5 s of another change (etcd.md 28)
	rpctypes.ErrNotLeader:              true, // leadership moved since we looked
	rpctypes.ErrBadLeaderTransferee:    false,
	errForLearners:                     false,
	rpctypes.ErrCorrupt:                false,
	rpctypes.ErrPermissionDenied:       false,
	rpctypes.ErrUserEmpty:              false,
	rpctypes.ErrInvalidAuthToken:       false,
}

// outcome classifies what a call for a change gave.
func outcome(op, subject string, err error) error {
	var call *CallError
	if err == nil || !errors.As(err, &call) {
		return err
	}
	if !call.Accepted {
		return &RejectedError{Op: op, Subject: subject, Err: ErrNotSent, Detail: call.Error(), Retry: true}
	}
	for reason, retry := range rejections {
		if errors.Is(call.Err, reason) {
			return &RejectedError{Op: op, Subject: subject, Err: reason, Retry: retry}
		}
	}
	return fmt.Errorf("etcd: %s %s through %s: %w: %w", op, subject, call.Endpoint, control.ErrUnknown, call.Err)
}
