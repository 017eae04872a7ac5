package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"

	"suffrage/membership"
	"suffrage/membership/control"
)

// One newcomer's whole life on real etcd: every change applied, rejected and
// without an answer.
func TestChanger(t *testing.T) {
	r := newRig(t, 3)
	h4 := r.Another()
	peer := h4.Config.AdvertisePeer
	r.calm("add", func() error { return r.AddLearner(r.ctx, peer) })
	if err := r.AddLearner(r.ctx, peer); err != nil {
		t.Errorf("a learner that is there is there: %v", err)
	}
	r.rejected("etcd takes one learner", r.settled(rpctypes.ErrTooManyLearners, func() error { return r.AddLearner(r.ctx, "http://127.0.0.1:1") }), rpctypes.ErrTooManyLearners, false)
	voter := r.follower()
	r.rejected("a voter is no learner", r.AddLearner(r.ctx, voter.PeerURLs[0]), rpctypes.ErrPeerURLExist, false)
	id := r.id(peer)
	r.rejected("one that never started is not in sync", r.settled(rpctypes.ErrMemberLearnerNotReady, func() error { return r.Promote(r.ctx, id) }), rpctypes.ErrMemberLearnerNotReady, true)
	r.rejected("nobody", r.Promote(r.ctx, "beef"), rpctypes.ErrMemberNotFound, false)
	r.rejected("no ID", r.Promote(r.ctx, "h4"), rpctypes.ErrMemberNotFound, false)
	if err := r.Promote(r.ctx, voter.ID); err != nil {
		t.Errorf("a voter votes (S090): %v", err)
	}
	r.rejected("a learner cannot lead", r.MoveLeader(r.ctx, id), rpctypes.ErrBadLeaderTransferee, false)
	r.rejected("etcd says so too", r.raw(r.leader(), "move leader", func(ctx context.Context, c *Conn) error {
		_, err := c.maintenance().MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: number(t, id)})
		return err
	}), rpctypes.ErrBadLeaderTransferee, false)
	r.rejected("only a leader can hand over", r.raw(voter, "move leader", func(ctx context.Context, c *Conn) error {
		_, err := c.maintenance().MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: number(t, voter.ID)})
		return err
	}), rpctypes.ErrNotLeader, true)

	h4.Start(false, true)
	ob := r.until("the learner answers", func(ob Observation) bool { m, _ := find(ob.Members, id); return m.Responding })
	learner, _ := find(ob.Members, id)
	r.rejected("learners serve no change (S040)", r.raw(learner, "remove", func(ctx context.Context, c *Conn) error {
		_, err := c.cluster().MemberRemove(ctx, &pb.MemberRemoveRequest{ID: number(t, voter.ID)})
		return err
	}), errForLearners, false)
	r.calm("promote", func() error { return r.Promote(r.ctx, id) })
	if err := r.Promote(r.ctx, id); err != nil {
		t.Errorf("promoted twice is promoted: %v", err)
	}
	r.rejected("etcd says so too", r.raw(r.leader(), "promote", func(ctx context.Context, c *Conn) error {
		_, err := c.cluster().MemberPromote(ctx, &pb.MemberPromoteRequest{ID: number(t, id)})
		return err
	}), rpctypes.ErrMemberNotLearner, false)

	before := r.leader()
	to := voter
	if before.ID == to.ID {
		to = r.follower()
	}
	if err := r.MoveLeader(r.ctx, to.ID); err != nil {
		t.Error(err)
	}
	if l := r.leader(); l.ID != to.ID {
		t.Errorf("%s leads, not %s (before: %s)", l.Name, to.Name, before.Name)
	}
	if err := r.MoveLeader(r.ctx, to.ID); err != nil {
		t.Errorf("it leads already: %v", err)
	}
	r.rejected("nobody", r.MoveLeader(r.ctx, "beef"), rpctypes.ErrMemberNotFound, false)
	r.rejected("a leader is not removed", r.Remove(r.ctx, to.ID), ErrLeads, false)
	r.rejected("no ID", r.Remove(r.ctx, "00beef"), rpctypes.ErrMemberNotFound, false)

	t.Run("lost replies", func(t *testing.T) { testLostReplies(t, r, id) })
	if err := r.Remove(r.ctx, id); err != nil {
		t.Errorf("what is gone is removed (S090): %v", err)
	}
	r.rejected("three stay", r.Remove(r.ctx, r.follower().ID), ErrTooFew, false)
	t.Run("the same second", func(t *testing.T) { testSameSecond(t, r) })
	t.Run("a frozen voter", func(t *testing.T) { testFrozenVoter(t, r) })
	t.Run("a frozen leader", func(t *testing.T) { testFrozenLeader(t, r) })
	t.Run("a dead voter", func(t *testing.T) { testDead(t, r) })
}

// The call is made, its answer never comes (S012).
func testLostReplies(t *testing.T, r *rig, id string) {
	r = r.in(t)
	leader := r.leader()
	x := r.proxies.at[leader.ClientURLs[0]]
	if leader.ID == id {
		t.Fatal("the newcomer leads")
	}
	r.Point = func(at string) {
		if at == "before remove" {
			x.lose(true, false)
		}
	}
	short := *r.Changer
	short.most = time.Second
	r.unknown("the request is lost, nobody can tell", short.Remove(r.ctx, id))
	x.cut()
	if _, listed := find(r.now().Members, id); !listed {
		t.Error("it was never asked for")
	}
	// etcd wants connections that are 5 s old (etcd.md 28), and its answer would be
	// lost too.
	time.Sleep(6 * time.Second)
	done := make(chan struct{})
	r.Point = func(at string) {
		if at != "before remove" {
			return
		}
		x.lose(false, true)
		go func() {
			defer close(done)
			r.until("the member is gone", func(ob Observation) bool { _, listed := find(ob.Members, id); return !listed })
			x.cut()
		}()
	}
	r.unknown("it was done, and the connection cut before the answer", r.Remove(r.ctx, id))
	<-done
	r.Point = nil
}

// A newcomer that is added, removed and added again within a second has the ID
// that is dead for ever (etcd.md 25).
func testSameSecond(t *testing.T, r *rig) {
	r = r.in(t)
	const peer = "http://127.0.0.1:3999"
	for {
		r.calm("add", func() error { return r.AddLearner(r.ctx, peer) })
		r.calm("remove", func() error { return r.Remove(r.ctx, r.id(peer)) })
		err := r.AddLearner(r.ctx, peer)
		if errors.Is(err, ErrSameSecond) {
			r.rejected("calmly", err, ErrSameSecond, true)
			break
		}
		if r.ctx.Err() != nil {
			t.Fatalf("never in one second: %v", err)
		}
	}
	r.calm("a second later", func() error { return r.AddLearner(r.ctx, peer) })
	r.calm("remove", func() error { return r.Remove(r.ctx, r.id(peer)) })
}

// etcd 3.7 would accept a learner while a voter is frozen (etcd.md 0); we do not.
func testFrozenVoter(t *testing.T, r *rig) {
	r = r.in(t)
	f := r.follower()
	m := r.member(f.Name)
	m.Signal(syscall.SIGSTOP)
	defer m.Signal(syscall.SIGCONT)
	err := r.AddLearner(r.ctx, "http://127.0.0.1:3998")
	r.rejected("a voter is frozen", err, ErrSilent, true)
	if !strings.Contains(fmt.Sprint(err), f.Name) {
		t.Errorf("it does not say who: %v", err)
	}
	r.rejected("a frozen one cannot lead", r.MoveLeader(r.ctx, f.ID), ErrSilent, true)
	m.Signal(syscall.SIGCONT)
	r.until("it is back", func(ob Observation) bool { m, _ := find(ob.Members, f.ID); return m.Responding })
}

func testFrozenLeader(t *testing.T, r *rig) {
	r = r.in(t)
	const peer = "http://127.0.0.1:3997"
	leader := r.leader()
	m := r.member(leader.Name)
	r.Point = func(at string) {
		if at == "before add learner" {
			m.Signal(syscall.SIGSTOP)
		}
	}
	r.unknown("the leader froze with the call in its hands", r.AddLearner(r.ctx, peer))
	r.Point = nil
	// What was on its way when it froze may have been done by the next leader.
	err := r.AddLearner(r.ctx, peer)
	if _, listed := at(r.now().Members, peer); !errors.Is(err, ErrRejected) && (err != nil || !listed) {
		t.Errorf("while it is frozen nothing is sent: %v", err)
	}
	m.Signal(syscall.SIGCONT)
	r.until("it is back", func(ob Observation) bool { m, _ := find(ob.Members, leader.ID); return m.Responding })
	if _, listed := at(r.now().Members, peer); listed {
		r.calm("what was unknown was done", func() error { return r.Remove(r.ctx, r.id(peer)) })
	}
}

func testDead(t *testing.T, r *rig) {
	r = r.in(t)
	leader := r.leader()
	f := r.follower()
	r.member(f.Name).Signal(syscall.SIGKILL)
	if _, err := r.member(f.Name).Wait(); err == nil {
		t.Error("it was killed")
	}
	// etcd notices a connection that ended; its own check then says so.
	for {
		err := r.raw(leader, "remove", func(ctx context.Context, c *Conn) error {
			_, err := c.cluster().MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{"http://127.0.0.1:3996"}})
			return err
		})
		if errors.Is(err, rpctypes.ErrMemberNotEnoughStarted) || errors.Is(err, rpctypes.ErrUnhealthy) {
			var rejected *RejectedError
			if !errors.As(err, &rejected) || !rejected.Retry {
				t.Errorf("time may lift it: %v", err)
			}
			break
		}
		t.Logf("raw: %v", err)
		if r.ctx.Err() != nil || err == nil {
			t.Fatalf("etcd took a fourth voter beside a dead one: %v", err)
		}
	}
	r.rejected("two are not a majority that may lose one", r.Remove(r.ctx, f.ID), ErrTooFew, false)

	// By the owner's word it may go, when all that stay answer.
	bury := func(id string) error { return r.Changer.remove(r.ctx, id, scene.dead, nil) }
	r.rejected("one that answers is not dead", bury(leader.ID), ErrAlive, false)
	var other membership.Member
	for _, m := range r.now().Members {
		if m.ID != leader.ID && m.ID != f.ID {
			other = m
		}
	}
	r.member(other.Name).Signal(syscall.SIGSTOP)
	if err := bury(f.ID); !errors.Is(err, ErrRejected) {
		t.Errorf("no quorum would stand behind it: %v", err)
	}
	r.member(other.Name).Signal(syscall.SIGCONT)
	r.until("the other is back", func(ob Observation) bool { m, _ := find(ob.Members, other.ID); return m.Responding })
	r.calm("the dead one", func() error { return bury(f.ID) })
	if _, listed := find(r.now().Members, f.ID); listed {
		t.Error("it is listed")
	}
}

// A newcomer that grows a fleet of one is taken back by its operation, and by
// nobody else.
func TestChangerTurnsBack(t *testing.T) {
	r := newRig(t, 1)
	first, h2 := r.leader(), r.Another()
	r.calm("add", func() error { return r.AddLearner(r.ctx, h2.Config.AdvertisePeer) })
	id := r.id(h2.Config.AdvertisePeer)
	h2.Start(false, true)
	r.calm("promote", func() error { return r.Promote(r.ctx, id) })
	r.until("both answer", func(ob Observation) bool { m, _ := find(ob.Members, id); return m.Responding && !m.Learner })
	r.rejected("without an operation", r.Remove(r.ctx, id), ErrTooFew, false)
	open := membership.Operation{ID: "op", In: "h2", InMember: "beef", MembersBefore: []string{first.ID}}
	r.Open = func() (*membership.Operation, error) { return &open, nil }
	r.rejected("it is not the newcomer", r.Remove(r.ctx, id), ErrTooFew, false)
	open.InMember = id
	r.calm("move leader", func() error { return r.MoveLeader(r.ctx, first.ID) })
	r.calm("turn back", func() error { return r.Remove(r.ctx, id) })
	if n := len(r.now().Members); n != 1 {
		t.Errorf("%d members", n)
	}
}

func TestChangerAlone(t *testing.T) {
	r := newRig(t, 1)
	only := r.Changer.observe(r.ctx).Members[0].ID
	r.rejected("the last voter stays", r.Remove(r.ctx, only), ErrLastVoter, false)
	r.rejected("even dead", r.Changer.remove(r.ctx, only, scene.dead, nil), ErrLastVoter, false)
	r.Members[0].Signal(syscall.SIGKILL)
	_, _ = r.Members[0].Wait()
	r.rejected("nobody there", r.AddLearner(r.ctx, "http://127.0.0.1:1"), ErrNotSent, true)
}

// Every answer that etcd gives, as it comes over gRPC: what is not known to be
// a rejection is unknown.
func TestOutcome(t *testing.T) {
	for _, test := range []struct {
		err     error
		unknown bool
	}{
		{rpctypes.ErrGRPCUnhealthy, false},
		{rpctypes.ErrGRPCLearnerNotReady, false},
		{rpctypes.ErrGRPCTooManyLearners, false},
		{rpctypes.ErrGRPCNotLeader, false},
		{rpctypes.ErrGRPCMemberNotFound, false},
		{rpctypes.ErrGRPCMemberNotLearner, false},
		{rpctypes.ErrGRPCMemberNotEnoughStarted, false},
		// 3.7's server sends this one without a code of its own.
		{status.Error(2, rpctypes.ErrMemberNotEnoughStarted.Error()), false},
		{rpctypes.ErrGRPCTimeout, true},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, true},
		{rpctypes.ErrGRPCTimeoutDueToConnectionLost, true},
		{rpctypes.ErrGRPCLeaderChanged, true},
		{rpctypes.ErrGRPCNoLeader, true}, // a follower that forwarded may say so afterwards
		{rpctypes.ErrGRPCStopped, true},
		{status.Error(2, "etcdserver: a reason of another version"), true},
		{context.DeadlineExceeded, true},
	} {
		c := &Conn{Endpoint: "http://h1:2379", at: connected}
		err := outcome("promote", "beef", c.fail("promote", test.err))
		if errors.Is(err, control.ErrUnknown) != test.unknown || errors.Is(err, ErrRejected) == test.unknown {
			t.Errorf("%v: %v", test.err, err)
		}
		c.at = dialing
		if err := outcome("promote", "beef", c.fail("promote", test.err)); !errors.Is(err, ErrNotSent) {
			t.Errorf("never connected: %v", err)
		}
	}
	if err := outcome("promote", "beef", nil); err != nil {
		t.Error(err)
	}
}
