package etcd_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

func clientPrefix() clientv3.OpOption { return clientv3.WithPrefix() }

// What Suffrage keeps in etcd, on one member.
func TestKeys(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	t.Run("marks", func(t *testing.T) { testMarks(t, clientOf(t, c)) })
	t.Run("election and record", func(t *testing.T) { testElection(t, c) })
}

func testMarks(t *testing.T, cl *clientv3.Client) {
	ctx := patient(t)
	say := &membership.Say{Value: true, By: "anna", At: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Reason: "wired"}
	set := func(m membership.Mark) (membership.Mark, error) { m.Eligible = say; return m, nil }
	if _, err := etcd.UpdateMark(ctx, cl, "h4", set); err != nil {
		t.Fatal(err)
	}
	pin := func(m membership.Mark) (membership.Mark, error) {
		if !m.IsEligible() {
			t.Error("the mark before was not read")
		}
		m.Pinned = say
		return m, nil
	}
	if _, err := etcd.UpdateMark(ctx, cl, "h4", pin); err != nil {
		t.Fatal(err)
	}
	marks, err := etcd.Marks(ctx, cl)
	if err != nil || !marks["h4"].IsEligible() || !marks["h4"].IsPinned() || marks["h4"].Pinned.Reason != "wired" {
		t.Errorf("marks %v, %v", marks, err)
	}
	// Somebody else writes in between, once: nothing of theirs is lost.
	once := true
	_, err = etcd.UpdateMark(ctx, cl, "h4", func(m membership.Mark) (membership.Mark, error) {
		if once {
			once = false
			other := func(m membership.Mark) (membership.Mark, error) { m.Eligible = nil; return m, nil }
			if _, err := etcd.UpdateMark(ctx, cl, "h4", other); err != nil {
				t.Fatal(err)
			}
		}
		m.Pinned = nil
		return m, nil
	})
	if marks, _ := etcd.Marks(ctx, cl); err != nil || marks["h4"] != (membership.Mark{}) {
		t.Errorf("after two changes at once: %+v, %v", marks["h4"], err)
	}
	if _, err := etcd.UpdateMark(ctx, cl, "h4", func(m membership.Mark) (membership.Mark, error) {
		m.Pinned = &membership.Say{Reason: strings.Repeat("x", 5000)}
		return m, nil
	}); err == nil {
		t.Error("a mark of any size was taken")
	}
	// A mark that another version wrote is an error that names the key, not a guess.
	if _, err := cl.Put(ctx, "/suffrage/hosts/h5/mark", `{"eligible":{"value":true},"novel":1}`); err != nil {
		t.Fatal(err)
	}
	if marks, err := etcd.Marks(ctx, cl); err == nil || !strings.Contains(err.Error(), "/suffrage/hosts/h5/mark") || len(marks) != 1 {
		t.Errorf("marks %v, %v", marks, err)
	}
}

func testElection(t *testing.T, c *membertest.Cluster) {
	ctx := patient(t)
	one, two := clientOf(t, c), clientOf(t, c)
	if _, err := etcd.Leader(ctx, one); !errors.Is(err, etcd.ErrNoLeader) {
		t.Fatalf("nobody leads yet: %v", err)
	}
	type place struct {
		l   etcd.Leadership
		ctx context.Context
	}
	lead := func(cl *clientv3.Client, host string) (leads chan place, end chan error) {
		leads, end = make(chan place, 1), make(chan error, 1)
		go func() {
			end <- etcd.Lead(ctx, cl, etcd.Candidate{Host: host, Instance: host + "-1"}, etcd.DefaultTTL, func(ctx context.Context, l etcd.Leadership) error {
				leads <- place{l, ctx}
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		return leads, end
	}
	leads1, end1 := lead(one, "h1")
	p1 := <-leads1
	leads2, end2 := lead(two, "h2")
	l, err := etcd.Leader(ctx, two)
	if err != nil || l.Host != "h1" || l.Instance != "h1-1" || l.Since.IsZero() {
		t.Errorf("leader %+v, %v", l, err)
	}
	for { // the second one waits for its turn
		both, err := etcd.Controllers(ctx, two)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(both, []string{"h1", "h2"}) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	record, _ := etcd.Next(etcd.Record{}, "c1", []string{"b", "a"}, time.Unix(100, 0).UTC())
	if err := etcd.SaveRecord(ctx, one, p1.l, record); err != nil {
		t.Fatal(err)
	}
	// The lease of the first ends under it, as if it had been frozen for long.
	leases, err := one.Leases(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range leases.Leases {
		ttl, err := one.TimeToLive(ctx, id.ID, clientv3.WithAttachedKeys())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range ttl.Keys {
			if kv, err := one.Get(ctx, string(k)); err == nil && strings.Contains(string(kv.Kvs[0].Value), `"h1"`) {
				if _, err := one.Revoke(ctx, id.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	p2 := <-leads2
	stale := etcd.Record{ClusterID: "stale"}
	if err := etcd.SaveRecord(ctx, one, p1.l, stale); !errors.Is(err, etcd.ErrLost) {
		t.Errorf("the deposed one wrote: %v", err)
	}
	if err := <-end1; !errors.Is(err, etcd.ErrLost) {
		t.Errorf("the deposed one ended with %v", err)
	}
	if got, err := etcd.LoadRecord(ctx, two); err != nil || !slices.Equal(got.Members, []string{"a", "b"}) {
		t.Errorf("record %+v, %v", got, err)
	}
	if who, err := etcd.Controllers(ctx, two); err != nil || !slices.Equal(who, []string{"h2"}) {
		t.Errorf("only the second one is left: %v, %v", who, err)
	}
	if err := etcd.SaveRecord(ctx, two, p2.l, record); err != nil {
		t.Errorf("the new leader may write: %v", err)
	}
	// Ending with its context it gives up its place at once.
	ctx3, stop := context.WithCancel(ctx)
	end3 := make(chan error, 1)
	go func() {
		end3 <- etcd.Lead(ctx3, one, etcd.Candidate{Host: "h3"}, etcd.DefaultTTL, func(context.Context, etcd.Leadership) error { return nil })
	}()
	stop()
	if err := <-end3; !errors.Is(err, context.Canceled) {
		t.Errorf("one that waited and was told to stop: %v", err)
	}
	two.Close()
	if err := <-end2; err == nil {
		t.Error("without a client nobody leads")
	}
}

func TestNext(t *testing.T) {
	t0, t1 := time.Unix(100, 0).UTC(), time.Unix(200, 0).UTC()
	old := etcd.Record{ClusterID: "c1", Members: []string{"a", "b", "c"}, Since: t0}
	for _, test := range []struct {
		why     string
		old     etcd.Record
		cluster string
		voters  []string
		want    etcd.Record
		changed bool
	}{
		{"nothing was recorded: no change was seen", etcd.Record{}, "c1", []string{"b", "a"}, etcd.Record{ClusterID: "c1", Members: []string{"a", "b"}, Since: t1}, true},
		{"the same voters in another order", old, "c1", []string{"c", "b", "a"}, old, false},
		{"one voter is another", old, "c1", []string{"a", "b", "d"}, etcd.Record{ClusterID: "c1", Members: []string{"a", "b", "d"}, Since: t1, Changed: t1}, true},
		{"a clock that was ahead wrote it", etcd.Record{ClusterID: "c1", Members: []string{"a", "b"}, Since: t1.Add(time.Hour), Changed: t1.Add(time.Hour)}, "c1", []string{"a", "b"},
			etcd.Record{ClusterID: "c1", Members: []string{"a", "b"}, Since: t1, Changed: t1}, true},
		{"a restore: only the owner may accept it", old, "c2", []string{"x"}, old, false},
		{"an observation without a list says nothing", old, "c1", nil, old, false},
		{"nor one without a cluster", etcd.Record{}, "", []string{"a"}, etcd.Record{}, false},
	} {
		got, changed := etcd.Next(test.old, test.cluster, test.voters, t1)
		if got.ClusterID != test.want.ClusterID || !slices.Equal(got.Members, test.want.Members) || !got.Since.Equal(test.want.Since) || !got.Changed.Equal(test.want.Changed) || changed != test.changed {
			t.Errorf("%s: %+v, %v; want %+v, %v", test.why, got, changed, test.want, test.changed)
		}
	}
}
