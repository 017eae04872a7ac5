package kubernetes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/mesh-tests/kubetest"
)

// Two controllers whose settings name two namespaces have two Leases, and one of
// them leads all the same: the election is in etcd. What the first one would write
// under its own Lease after that is not written.
func TestTwoNamespaces(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t)
	for _, ns := range []string{"a", "b"} {
		s.Namespace(t, ns)
		if err := lease.Create(patient(t), open(t, s, kubetest.Admin, ns), timing().Duration); err != nil {
			t.Fatal(err)
		}
	}
	cl := etcdOf(t, s)
	var inside atomic.Int64
	lead := func(ctx context.Context, namespace string, work func(context.Context, etcd.Lease, *lease.Held) error) error {
		st := open(t, s, kubetest.Admin, namespace)
		return etcd.Lead(ctx, cl, etcd.Candidate{Host: namespace, Instance: "1"}, time.Minute, func(ctx context.Context, _ etcd.Leadership) error {
			return lease.Run(ctx, patiently(), st, lease.NewHolder(namespace), "test", func(ctx context.Context, h *lease.Held) error {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d of them act at a time", n)
				}
				defer inside.Add(-1)
				return work(ctx, etcd.Lease{Store: st, Key: st.EtcdKey()}, h)
			})
		})
	}
	waiting := make(chan error, 1)
	second, stop := context.WithCancel(patient(t))
	defer stop()
	err := lead(patient(t), "a", func(ctx context.Context, l etcd.Lease, h *lease.Held) error {
		go func() {
			waiting <- lead(second, "b", func(context.Context, etcd.Lease, *lease.Held) error { return nil })
		}()
		// Both are in the queue.
		for {
			got, err := cl.Get(ctx, "/suffrage/controller/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil {
				return err
			}
			if got.Count == 2 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		return etcd.NewHistory(cl, l.Right(h.Term())).Record(ctx, uint64(h.Term()), membership.Operation{ID: "op-a", Outcome: membership.Undone, Begun: time.Now().UTC(), Ended: time.Now().UTC()})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Fatalf("the other one ended with %v", err)
	}
	// The first Lease is free again: nothing is written under it.
	st := open(t, s, kubetest.Admin, "a")
	l := etcd.Lease{Store: st, Key: st.EtcdKey()}
	seen, err := st.Get(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	op := membership.Operation{ID: "op-late", Outcome: membership.Undone, Begun: time.Now().UTC(), Ended: time.Now().UTC()}
	if err := etcd.NewHistory(cl, l.Right(seen.Record.Term)).Record(patient(t), uint64(seen.Record.Term), op); !errors.Is(err, lease.ErrLost) {
		t.Errorf("after the release it gave %v, want ErrLost", err)
	}
}
