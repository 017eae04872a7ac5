package etcd

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"suffrage/membership"
)

// Three voters, of whom one may be removed only as a dead one, by the operation
// that is in the Lease's journal, and only while it is dead.
func TestRemoverDead(t *testing.T) {
	r := newRig(t, 3)
	kv := r.client()
	held, release := holding(t, r.ctx, kv)
	defer release()
	q, journal := NewRequester(kv, OwnLease(kv), held.Term(), r.urlOf), NewJournal(held)
	out := r.follower()
	actor := &Remover{Client: r.client(), Lease: OwnLease(kv), Changer: NewChanger(r.cfg, time.Second), Who: Candidate{Host: "h1", Instance: "1"}, TTL: 2 * DefaultTTL,
		HostOf: r.HostOf, Every: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	ctx, stop := context.WithCancel(r.ctx)
	end := make(chan error, 1)
	go func() { end <- actor.Run(ctx) }()
	defer func() {
		stop()
		if err := <-end; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()

	op := membership.Operation{ID: "op-1", Out: out.Name, Dead: true, OutMember: out.ID, By: "anna", ClusterID: r.now().ClusterID, Begun: time.Now().UTC()}
	ask := func(op membership.Operation) {
		t.Helper()
		r.eventually("journal", func() error { return journal.Save(r.ctx, &op) })
		r.eventually("ask", func() error {
			return q.Request(r.ctx, uint64(q.term), membership.Removal{Host: out.Name, Member: out.ID, Operation: "op-1", At: time.Now()})
		})
	}
	refused := func(why string, op membership.Operation, want string) {
		t.Helper()
		ask(op)
		if got := r.refusal(kv, out.Name); !strings.Contains(got, want) {
			t.Errorf("%s: refused with %q, want %q", why, got, want)
		}
		r.listed(out.ID, true)
		r.eventually("withdraw", func() error { return q.Withdraw(r.ctx, out.Name, "op-1") })
	}
	refused("it answers", op, "it answers, so it is not dead")
	m := r.member(out.Name)
	m.Signal(syscall.SIGKILL)
	if _, err := m.Wait(); err == nil {
		t.Error("it was killed")
	}
	for _, change := range []struct {
		why string
		f   func(*membership.Operation)
	}{
		{"a shrink leaves three", func(op *membership.Operation) { op.Dead = false }},
		{"another operation is open", func(op *membership.Operation) { op.ID = "op-2" }},
		{"another member was confirmed", func(op *membership.Operation) { op.OutMember = "beef" }},
	} {
		other := op
		change.f(&other)
		refused(change.why, other, "fewer than 3 voters")
	}
	ask(op)
	ob := r.until("the dead member is gone", func(ob Observation) bool { _, listed := find(ob.Members, out.ID); return !listed })
	if len(ob.Members) != 2 {
		t.Errorf("%d members", len(ob.Members))
	}
	r.eventually("taken back once it is done", func() error { return q.Withdraw(r.ctx, out.Name, "op-1") })
}
