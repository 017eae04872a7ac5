package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"suffrage/lease"
	"suffrage/lease/etcd"
	"suffrage/lease/leasetest"
	"suffrage/member/membertest"
)

func TestEtcdConforms(t *testing.T) {
	t.Parallel()
	c := membertest.New(t, membertest.Options{})
	cl := clientOf(t, c)
	var places atomic.Int64
	leasetest.Suite{Config: timing(), Open: func(t *testing.T) leasetest.Backend {
		kv := namespace.NewKV(cl, fmt.Sprintf("/%d", places.Add(1)))
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		return leasetest.Backend{
			Store:  etcd.New(kv),
			Delete: func() { _, err := kv.Delete(t.Context(), etcd.Key); must(err) },
			Garble: func() { _, err := kv.Put(t.Context(), etcd.Key, `{"term":1,"colour":"red"}`); must(err) },
		}
	}}.Run(t)
}

// What etcd refuses before it proposes is told from what may still be done.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	c := membertest.New(t, membertest.Options{Size: 1})
	cl := clientOf(t, c)
	s := etcd.New(cl)
	if err := lease.Create(t.Context(), s, timing().Duration); err != nil {
		t.Fatal(err)
	}
	seen, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := seen.Record
	r.Renewals++
	if _, err := s.Put(t.Context(), r, "seven"); err == nil || errors.Is(err, lease.ErrUnknown) || errors.Is(err, lease.ErrConflict) {
		t.Errorf("a version that is not etcd's gave %v", err)
	}

	c.Members[0].Signal(syscall.SIGSTOP)
	brief := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	for err == nil { // until the signal arrived
		_, err = s.Get(brief())
	}
	_, err = s.Put(brief(), r, seen.Version)
	c.Members[0].Signal(syscall.SIGCONT)
	if !errors.Is(err, lease.ErrUnknown) {
		t.Errorf("a frozen member gave %v, want ErrUnknown", err)
	}

	alarm(t, cl)
	now, err := s.Get(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	r = now.Record
	r.Renewals++
	_, err = s.Put(patient(t), r, now.Version)
	if err == nil || errors.Is(err, lease.ErrUnknown) || !strings.Contains(err.Error(), "space") {
		t.Errorf("without space etcd gave %v, want a plain refusal that says so", err)
	}
}

// alarm makes etcd believe that it has no space.
func alarm(t *testing.T, cl *clientv3.Client) {
	t.Helper()
	m, err := cl.MemberList(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := raise(patient(t), cl, m.Members[0].ID); err != nil {
		t.Fatal(err)
	}
}

// raise raises the alarm of etcd itself for a member without space.
func raise(ctx context.Context, cl *clientv3.Client, id uint64) error {
	_, err := pb.NewMaintenanceClient(cl.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: pb.AlarmType_NOSPACE})
	return err
}
