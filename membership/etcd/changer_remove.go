package etcd

import (
	"context"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"suffrage/membership"
)

// Remove removes a member for ever: its ID cannot come back. A voter is removed
// only when it does not lead, at least three would be left, and each of those
// answers. A learner may go at any time: it has no part in any quorum. The
// newcomer of the open operation may go where the voters from before were fewer
// than three too, since that is turning back.
func (c *Changer) Remove(ctx context.Context, id string) error {
	least := minVoters
	if c.Open != nil {
		op, err := c.Open()
		if err != nil {
			return err
		}
		if op != nil && op.InMember == id {
			least = min(least, len(op.MembersBefore))
		}
	}
	return c.remove(ctx, id, func(s scene, m membership.Member) error { return s.removable(m, least) }, nil)
}

// remove asks may, and then, right before the call, sure, where there is one.
func (c *Changer) remove(ctx context.Context, id string, may func(scene, membership.Member) error, sure func(context.Context) error) error {
	s, err := c.look(ctx, "remove", id)
	if err != nil {
		return err
	}
	number, bad := strconv.ParseUint(id, 16, 64)
	if bad != nil || number == 0 || ID(number) != id {
		return s.reject(rpctypes.ErrMemberNotFound, "that is no member ID", false)
	}
	m, listed := find(s.Members, id)
	if !listed {
		return nil
	}
	if err := may(s, m); err != nil {
		return err
	}
	if sure != nil {
		if err := sure(ctx); err != nil {
			return err
		}
	}
	err = c.call(ctx, s, func(ctx context.Context, conn *Conn) error {
		_, err := conn.cluster().MemberRemove(ctx, &pb.MemberRemoveRequest{ID: number})
		return err
	})
	if reason(err) == rpctypes.ErrMemberNotFound {
		return c.unless(ctx, err, func(members []membership.Member) bool {
			_, listed := find(members, id)
			return !listed
		})
	}
	return err
}

// removable is a member that answers, or need not: at least so many voters stay.
func (s scene) removable(m membership.Member, least int) error {
	rest, _ := s.voters(m.ID)
	switch {
	case m.Learner:
		return nil
	case len(rest) == 0:
		return s.reject(ErrLastVoter, "", false)
	case m.ID == s.leader.ID:
		return s.reject(ErrLeads, "", false)
	case len(rest) < least:
		return s.reject(ErrTooFew, strings.Join(rest, ", "), false)
	}
	return s.answering(m.ID)
}

// dead is a voter that does not answer, by the owner's word. All that stay have
// to: so they have the quorum that the removal needs, and the one after it.
func (s scene) dead(m membership.Member) error {
	rest, _ := s.voters(m.ID)
	switch {
	case m.Learner:
		return s.reject(ErrNoVote, "", false)
	case len(rest) == 0:
		return s.reject(ErrLastVoter, "", false)
	case m.Responding:
		return s.reject(ErrAlive, "", false)
	}
	return s.answering(m.ID)
}
