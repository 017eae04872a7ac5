package etcd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"suffrage/membership"
	"suffrage/membership/control"
)

// minVoters is the fewest voters that a removal may leave (invariant 1), but for
// that of a dead one, and of a newcomer where there were fewer before.
const minVoters = 3

// replyMargin is for the way of the last reply: etcd itself ends a change after
// 5 s + 2·E (etcd.md 11), and who gives up earlier reports failures that commit.
const replyMargin = time.Second

// Changer changes the membership. Before each change it looks at the whole
// cluster on fresh connections, the way an Observer does; what is true already
// is success without a call, and what must not be is rejected before one. The
// call goes to the leader, on a connection of its own: only the leader can hand
// over, and for removals etcd judges who is alive by the connections of the
// member that it asks (etcd.md 2).
//
// It repeats nothing and is told nothing of the Lease: the caller checks that
// right before.
type Changer struct {
	cfg  Config
	most time.Duration
	// Open gives the operation under way, for Remove, nil for none. Nil: none is.
	Open func() (*membership.Operation, error)
	// Point is called right before and after each call; tests act there. Nil
	// otherwise.
	Point func(name string)
}

var _ control.Members = (*Changer)(nil)

// NewChanger does not connect; cfg must be valid. The election timeout is the
// members' own, E.
func NewChanger(cfg Config, electionTimeout time.Duration) *Changer {
	return &Changer{cfg: cfg, most: 5*time.Second + 2*electionTimeout + replyMargin}
}

// Most is how long after it was sent a change may still be made: 5 s + 2·E, and
// a second for its way. With the looks before and after, a change takes at most
// this and five times Config.Timeout.
func (c *Changer) Most() time.Duration { return c.most }

// scene is the cluster right before a change.
type scene struct {
	Observation
	op, subject string
	leader      membership.Member
}

func (c *Changer) observe(ctx context.Context) Observation {
	return NewObserver(c.cfg, Options{}).Observe(ctx)
}

// look gives what is, or rejects: without a list that a quorum stands behind,
// and a leader that answers, nothing is sent.
func (c *Changer) look(ctx context.Context, op, subject string) (scene, error) {
	s := scene{Observation: c.observe(ctx), op: op, subject: subject}
	if s.Error != "" {
		return s, s.reject(ErrNotSent, s.Error, true)
	}
	for _, m := range s.Members {
		// One that was isolated may name itself too, in an older term.
		if !m.Learner && m.Responding && m.Leader == m.ID && m.RaftTerm >= s.leader.RaftTerm {
			s.leader = m
		}
	}
	if s.leader.ID == "" {
		return s, s.reject(ErrNotSent, "no voter that answers says that it leads", true)
	}
	return s, nil
}

func (s scene) reject(why error, detail string, retry bool) error {
	return &RejectedError{Op: s.op, Subject: s.subject, Err: why, Detail: detail, Retry: retry}
}

// voters are the labels of the voters but one, and of those that do not answer.
func (s scene) voters(but string) (all, silent []string) {
	for _, m := range s.Members {
		if m.Learner || m.ID == but {
			continue
		}
		all = append(all, m.Label())
		if !m.Responding {
			silent = append(silent, m.Label()+" ("+m.Error+")")
		}
	}
	return all, silent
}

// answering rejects while a voter other than but does not answer.
func (s scene) answering(but string) error {
	if _, silent := s.voters(but); len(silent) > 0 {
		return s.reject(ErrSilent, strings.Join(silent, ", "), true)
	}
	return nil
}

func find(members []membership.Member, id string) (m membership.Member, listed bool) {
	i := slices.IndexFunc(members, func(m membership.Member) bool { return m.ID == id })
	if i < 0 {
		return membership.Member{}, false
	}
	return members[i], true
}

// call makes one change through the leader.
func (c *Changer) call(ctx context.Context, s scene, change func(context.Context, *Conn) error) error {
	t, err := c.cfg.TLS()
	if err != nil {
		return s.reject(ErrNotSent, err.Error(), true)
	}
	id, err := strconv.ParseUint(s.leader.ID, 16, 64)
	if err != nil {
		return s.reject(ErrNotSent, err.Error(), false)
	}
	// Status proves that the connection stands and leads to the right member. So
	// what fails before it was never sent, and what fails after it is unknown.
	first, cancel := within(ctx, c.cfg.Timeout.Std())
	conn, _, err := statusOf(first, t, s.Reached[s.leader.ID], id)
	cancel()
	if err != nil {
		return s.reject(ErrNotSent, err.Error(), true)
	}
	defer conn.Close()
	ctx, cancel = within(ctx, c.most)
	defer cancel()
	c.point("before " + s.op)
	err = conn.fail(s.op, change(ctx, conn))
	c.point("after " + s.op)
	return outcome(s.op, s.subject, err)
}

func (c *Changer) point(name string) {
	if c.Point != nil {
		c.Point(name)
	}
}

// AddLearner adds a member without a vote. Every voter has to answer.
func (c *Changer) AddLearner(ctx context.Context, peerURL string) error {
	s, err := c.look(ctx, "add learner", peerURL)
	if err != nil {
		return err
	}
	if isLearner, listed := at(s.Members, peerURL); listed && isLearner {
		return nil
	} else if listed {
		return s.reject(rpctypes.ErrPeerURLExist, "it votes already", false)
	}
	if err := s.answering(""); err != nil {
		return err
	}
	err = c.call(ctx, s, func(ctx context.Context, conn *Conn) error {
		_, err := conn.cluster().MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{peerURL}, IsLearner: true})
		return err
	})
	switch reason(err) {
	case rpctypes.ErrPeerURLExist, rpctypes.ErrMemberExist:
		return c.unless(ctx, err, func(members []membership.Member) bool {
			isLearner, listed := at(members, peerURL)
			return listed && isLearner
		})
	case rpctypes.ErrMemberNotFound:
		return s.reject(ErrSameSecond, "ask again in a second", true)
	}
	return err
}

// at finds who has a peer URL.
func at(members []membership.Member, peerURL string) (isLearner, listed bool) {
	for _, m := range members {
		if slices.Contains(m.PeerURLs, peerURL) {
			return m.Learner, true
		}
	}
	return false, false
}

// Promote gives a learner its vote. Every voter has to answer; the learner has
// not: its client port opens late (etcd.md 27), and etcd itself knows how far it
// has come. So one that froze after it had caught up may be promoted.
func (c *Changer) Promote(ctx context.Context, id string) error {
	s, err := c.look(ctx, "promote", id)
	if err != nil {
		return err
	}
	m, listed := find(s.Members, id)
	number, bad := strconv.ParseUint(id, 16, 64)
	switch {
	case !listed || bad != nil:
		return s.reject(rpctypes.ErrMemberNotFound, "", false)
	case !m.Learner:
		return nil
	}
	if err := s.answering(""); err != nil {
		return err
	}
	err = c.call(ctx, s, func(ctx context.Context, conn *Conn) error {
		_, err := conn.cluster().MemberPromote(ctx, &pb.MemberPromoteRequest{ID: number})
		return err
	})
	if reason(err) == rpctypes.ErrMemberNotLearner {
		return c.unless(ctx, err, func(members []membership.Member) bool {
			m, listed := find(members, id)
			return listed && !m.Learner
		})
	}
	return err
}

// MoveLeader hands leadership to a voter that answers. The call goes to the
// leader's own endpoint and returns once it has moved.
func (c *Changer) MoveLeader(ctx context.Context, to string) error {
	s, err := c.look(ctx, "move leader", to)
	if err != nil {
		return err
	}
	m, listed := find(s.Members, to)
	number, bad := strconv.ParseUint(to, 16, 64)
	switch {
	case !listed || bad != nil:
		return s.reject(rpctypes.ErrMemberNotFound, "", false)
	case m.Learner:
		return s.reject(rpctypes.ErrBadLeaderTransferee, "it is a learner", false)
	case s.leader.ID == to:
		return nil
	case !m.Responding:
		return s.reject(ErrSilent, m.Label()+" ("+m.Error+")", true)
	}
	return c.call(ctx, s, func(ctx context.Context, conn *Conn) error {
		_, err := conn.maintenance().MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: number})
		return err
	})
}

// unless is nil when a list that a quorum stands behind shows that it is so.
func (c *Changer) unless(ctx context.Context, rejected error, so func([]membership.Member) bool) error {
	ob := c.observe(ctx)
	switch {
	case ob.Error != "":
		return fmt.Errorf("%w: %v, and the list could not be read again: %s", control.ErrUnknown, rejected, ob.Error)
	case so(ob.Members):
		return nil
	}
	return rejected
}

// reason is why a change was rejected, nil when it was not.
func reason(err error) error {
	if r, ok := err.(*RejectedError); ok {
		return r.Err
	}
	return nil
}
