package history

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"suffrage/member/membertest"
)

func TestMain(m *testing.M) {
	membertest.Main()
	os.Exit(m.Run())
}

// Real members, of which the leader is killed while clients go on. What they
// saw is linearizable, and is not any more once one of their writes is taken
// out of what they saw later.
func TestClients(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 3})
	cl, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, stop := context.WithCancel(t.Context())
	clients := &Clients{Client: cl, Prefix: "/history/"}
	type result struct {
		history History
		seen    Writes
	}
	done := make(chan result, 1)
	go func() {
		h, seen := clients.Run(ctx)
		done <- result{h, seen}
	}()
	acknowledged := func() int {
		clients.mu.Lock()
		defer clients.mu.Unlock()
		return clients.seen.Acknowledged
	}
	wait := func(n int) {
		for deadline := time.Now().Add(time.Minute); acknowledged() < n; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d writes in a minute, want %d", acknowledged(), n)
			}
		}
	}
	wait(50)
	for _, m := range c.Members {
		s, err := cl.Status(ctx, m.Config.AdvertiseClient)
		if err != nil {
			t.Fatal(err)
		}
		if s.Leader == s.Header.MemberId {
			m.Signal(syscall.SIGKILL)
			break
		}
	}
	wait(acknowledged() + 100)
	stop()
	r := <-done
	if err := errors.Join(Check(r.history), CheckReads(r.history)); err != nil {
		t.Error(err)
	}
	if r.seen.Failed != 0 || r.seen.Gap == 0 || r.seen.Slowest < r.seen.Gap/100 {
		t.Errorf("seen: %+v", r.seen)
	}
	t.Logf("%d operations; %+v", len(r.history), r.seen)

	var recorded bytes.Buffer
	if err := r.history.Write(&recorded); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&recorded)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range again {
		if o.Got != "" && i > len(again)/2 {
			again[i].Got = "" // as if what was written had been lost
			break
		}
	}
	if err := Check(again); err == nil {
		t.Error("a lost write was not noticed")
	}
}
