package endpoint

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/fitness"
	"suffrage/member/membertest"
)

// TestLeadershipMoves: no write fails while etcd's leadership goes round, and the
// watch has no gap. A write that is sent to a follower then would be lost now and
// then, and fail seconds later.
func TestLeadershipMoves(t *testing.T) {
	f := newFleet(t, nil)
	f.leads("it leads", anywhere)
	judge := f.write()
	c := f.direct()
	defer c.Close()
	for round := range 6 {
		next := f.Members[round%3]
		f.moveLeader(c, next)
		want := f.id(next.Name)
		f.leads("writes go to "+next.Name, func(x *fitness.EndpointFacts) bool { return x.Writes == want })
	}
	judge()
}

// TestRemovalAskedFor: a voter whose removal is asked for is left before it goes,
// and one that is removed and gone fails nothing.
func TestRemovalAskedFor(t *testing.T) {
	f := newFleet(t, func(o *Options, c *membertest.Cluster) { o.Address = c.Members[2].Address }) // its own voter
	leader := f.leads("it leads", anywhere).Writes
	own := f.id("h3")
	c := f.direct()
	defer c.Close()
	if leader == own {
		f.moveLeader(c, f.Members[0])
	}
	f.leads("reads go to its own voter, writes do not", func(x *fitness.EndpointFacts) bool { return x.Reads == own && x.Writes != own })
	judge := f.write()
	time.Sleep(200 * time.Millisecond) // some writes under way
	ask := `{"member":"` + own + `","name":"h3","peer":"` + f.Members[2].Config.AdvertisePeer + `","operation":"o","term":1,"at":"2026-01-01T00:00:00Z"}`
	if _, err := c.Put(t.Context(), "/suffrage/hosts/h3/remove", ask); err != nil {
		t.Fatal(err)
	}
	f.leads("nothing is on h3", notOn(own))
	list, err := c.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Members {
		if m.Name == "h3" {
			f.until("etcd removes h3", func() bool { // "unhealthy cluster" within 5 s of the start
				_, err := c.MemberRemove(t.Context(), m.ID)
				return err == nil || contains(err, "member not found") // the answer before went with h3
			})
		}
	}
	_, _ = f.Members[2].Wait()
	time.Sleep(time.Second)
	judge()
}

// TestVoterFrozen: a voter that still accepts and says nothing is left, and what
// was under way there ends.
func TestVoterFrozen(t *testing.T) {
	f := newFleet(t, nil)
	id := f.leads("it leads", anywhere).Reads
	m := f.named(id)
	watched := f.client.Watch(t.Context(), "k")
	m.Signal(syscall.SIGSTOP)
	defer m.Signal(syscall.SIGCONT)
	under := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
		defer cancel()
		_, err := f.client.Put(ctx, "under way", "v")
		under <- err
	}()
	f.leads("nothing is on "+m.Name, notOn(id))
	f.until("a write is answered", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := f.client.Put(ctx, "k", "v")
		return err == nil
	})
	select {
	case r := <-watched:
		if r.Err() != nil || len(r.Events) == 0 {
			t.Errorf("the watch says %+v", r)
		}
	case <-time.After(membertest.Patience):
		t.Error("the watch was not taken up elsewhere")
	}
	// The write that was under way at the frozen leader ends, and says what is known;
	// one that was at a follower, or not sent yet, is done.
	if err := <-under; err != nil && !contains(err, "it is not known whether this was done") {
		t.Errorf("the write under way says: %v", err)
	}
}

// TestVoterKilled: the same, with a connection that breaks.
func TestVoterKilled(t *testing.T) {
	f := newFleet(t, nil)
	id := f.leads("it leads", anywhere).Reads
	m := f.named(id)
	m.Signal(syscall.SIGKILL)
	f.leads("nothing is on "+m.Name, notOn(id))
	f.until("a write is answered", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := f.client.Put(ctx, "k", "v")
		return err == nil
	})
}

// TestNobodyThere: an endpoint that was there before etcd refuses at once and says
// why; so it does when all voters are gone. Then it leads again by itself.
func TestNobodyThere(t *testing.T) {
	f := newFleet(t, nil)
	f.leads("it leads", anywhere)
	for _, m := range f.Members {
		m.Signal(syscall.SIGKILL)
		_, _ = m.Wait()
	}
	f.leads("it leads nowhere", func(x *fitness.EndpointFacts) bool { return x.Reads == "" && x.Error != "" })
	refused := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
		defer cancel()
		_, err := f.client.Put(ctx, "k", "v")
		if !contains(err, "no voter of etcd can be led to: ") || !contains(err, "connection refused") {
			t.Errorf("a write says: %v", err)
		}
	}
	refused()
	f.end()
	f.start()
	f.leads("it leads nowhere", func(x *fitness.EndpointFacts) bool { return x.Reads == "" && x.Error != "" })
	f.client = f.dial()
	refused()
	for _, m := range f.Members {
		m.Start(false, false)
	}
	f.leads("it leads", anywhere)
	if _, err := f.client.Put(t.Context(), "k", "v"); err != nil {
		t.Error(err)
	}
}

// TestAgentRestarted: a watch has no gap, and writes go on.
func TestAgentRestarted(t *testing.T) {
	f := newFleet(t, nil)
	f.leads("it leads", anywhere)
	if _, err := f.client.Put(t.Context(), "k", "1"); err != nil {
		t.Fatal(err)
	}
	watched := f.client.Watch(t.Context(), "k", clientv3.WithRev(1))
	first := <-watched
	f.end()
	f.start()
	f.until("a write is answered", func() bool {
		_, err := f.client.Put(t.Context(), "k", "2")
		return err == nil
	})
	select {
	case r := <-watched:
		if r.Err() != nil || len(r.Events) == 0 || string(r.Events[0].Kv.Value) != "2" || len(first.Events) != 1 {
			t.Errorf("the watch says %+v, then %+v", first, r)
		}
	case <-time.After(membertest.Patience):
		t.Error("the watch was not taken up")
	}
}

// TestRestartedBehindASocket: where somebody else holds the socket, as systemd
// does, nothing fails while the agent restarts.
func TestRestartedBehindASocket(t *testing.T) {
	var held *net.TCPListener
	again := func(o *Options) {
		file, err := held.File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if o.Socket, err = net.FileListener(file); err != nil {
			t.Fatal(err)
		}
	}
	f := newFleet(t, func(o *Options, _ *membertest.Cluster) {
		l, err := net.Listen("tcp", o.Config.Listen)
		if err != nil {
			t.Fatal(err)
		}
		held = l.(*net.TCPListener)
		t.Cleanup(func() { held.Close() })
		again(o)
	})
	f.leads("it leads", anywhere)
	judge := f.write()
	for range 3 {
		time.Sleep(100 * time.Millisecond) // some writes are under way
		f.end()
		again(&f.o)
		f.start()
		f.leads("it leads", anywhere)
	}
	judge()
}

// TestAddressTaken: it says so, and listens once the address is free.
func TestAddressTaken(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	f := &fleet{Cluster: c, t: t}
	f.o, f.log = options(t, c)
	taken, err := net.Listen("tcp", f.o.Config.Listen)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		f.until("it says so", func() bool { return strings.Contains(f.log.text(), "address already in use") })
		taken.Close()
	}()
	f.start()
	f.leads("it leads", anywhere)
	if _, err := f.dial().Put(t.Context(), "k", "v"); err != nil {
		t.Error(err)
	}
}

// TestNotForClients: the members are not a client's to change, nor to list.
func TestNotForClients(t *testing.T) {
	f := newFleet(t, nil)
	f.leads("it leads", anywhere)
	_, err := f.client.MemberList(t.Context())
	if !contains(err, "is not for clients of the datastore") {
		t.Errorf("the member list says: %v", err)
	}
	if _, err := f.client.Status(t.Context(), "http://"+f.o.Config.Listen); err != nil {
		t.Error(err)
	}
	l, err := f.client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.client.KeepAliveOnce(t.Context(), l.ID); err != nil {
		t.Error(err)
	}
}
