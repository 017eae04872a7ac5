package kubernetes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// What is written in etcd under a Lease in Kubernetes is written only while that
// is held, in one transaction with the comparison.
func TestRightInEtcd(t *testing.T) {
	t.Parallel()
	s, st := fleet(t)
	cl := etcdOf(t, s)
	l := etcd.Lease{Store: st, Key: st.EtcdKey()}
	if err := l.Here(patient(t), cl); err != nil {
		t.Error(err)
	}
	elsewhere := etcd.Lease{Store: st, Key: "/other" + st.EtcdKey()}
	if err := elsewhere.Here(patient(t), cl); err == nil || !strings.Contains(err.Error(), "another prefix") {
		t.Errorf("a key that is not there gave %v", err)
	}
	op := membership.Operation{ID: "op-1", Outcome: membership.Undone, Begun: time.Now().UTC(), Ended: time.Now().UTC()}
	var history *etcd.History
	err := lease.Run(patient(t), patiently(), st, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
		right := l.Right(h.Term())
		history = etcd.NewHistory(cl, right)
		if err := history.Record(ctx, uint64(h.Term()), op); err != nil {
			return err
		}
		before, err := right(ctx)
		if err != nil {
			return err
		}
		if err := h.Write(ctx, []byte("something else")); err != nil {
			return err
		}
		r, err := cl.Txn(ctx).If(before).Then(clientv3.OpPut("/late", "")).Commit()
		if err == nil && r.Succeeded {
			t.Error("a transaction went through although the Lease was written meanwhile")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if ops, err := etcd.Operations(patient(t), cl, 5); err != nil || len(ops) != 1 {
		t.Errorf("%d operations (%v), want the one that was recorded", len(ops), err)
	}
	op.ID = "op-2"
	if err := history.Record(patient(t), 0, op); !errors.Is(err, lease.ErrLost) {
		t.Errorf("after the release it gave %v, want ErrLost", err)
	}
}
