package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease"
	leaseetcd "suffrage/lease/etcd"
	"suffrage/membership"
)

// holding holds the Lease until the test calls release.
func holding(t *testing.T, ctx context.Context, kv clientv3.KV) (held *lease.Held, release func()) {
	t.Helper()
	cfg, store := lease.DefaultConfig(), leaseetcd.New(kv)
	if err := lease.Create(ctx, store, cfg.Duration); err != nil {
		t.Fatal(err)
	}
	got, done, end := make(chan *lease.Held, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		end <- lease.Run(ctx, cfg, store, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
			got <- h
			select {
			case <-done:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	select {
	case h := <-got:
		return h, func() { close(done); <-end }
	case err := <-end:
		t.Fatal(err)
		return nil, nil
	}
}

// Four voters, two removal controllers, and every reason not to remove one.
func TestRemover(t *testing.T) {
	r := newRig(t, 4)
	kv := r.client()
	peer := func(host string) string { return r.urlOf(host) }
	held, release := holding(t, r.ctx, kv)
	q := NewRequester(kv, OwnLease(kv), held.Term(), peer)
	out := r.follower()
	ask := membership.Removal{Host: out.Name, Member: out.ID, Operation: "op-1", At: time.Now()}

	if _, err := leaderOf(r.ctx, kv, removerPrefix); !errors.Is(err, ErrNoLeader) {
		t.Errorf("nobody acts yet (S032): %v", err)
	}
	// Armed and taken back before anybody acted: it must never fire (S027).
	if err := q.Request(r.ctx, uint64(q.term), ask); err != nil {
		t.Fatal(err)
	}
	stale, err := annotations(r.ctx, kv)
	if err != nil || len(stale) != 1 || stale[0].bad != nil {
		t.Fatalf("%+v, %v", stale, err)
	}
	if err := q.Withdraw(r.ctx, out.Name, "op-2"); err == nil {
		t.Error("an operation took back what another asked for")
	}
	if err := q.Withdraw(r.ctx, out.Name, "op-1"); err != nil {
		t.Error(err)
	}
	if err := q.Withdraw(r.ctx, out.Name, "op-1"); err != nil {
		t.Errorf("taken back twice is taken back: %v", err)
	}

	// Announced, which is not asked for; asked for, which is not announced any more.
	for _, held := range []bool{true, true, false, true} {
		a := ask
		a.Held = held
		if err := q.Request(r.ctx, uint64(q.term), a); err != nil {
			t.Fatal(err)
		}
		all, err := Removals(r.ctx, kv)
		if err != nil || len(all) != 1 || all[0].Held && !held {
			t.Errorf("held %t: %+v, %v", held, all, err)
		}
	}
	if all, err := Removals(r.ctx, kv); err != nil || all[0].Held {
		t.Errorf("what is asked for was held again: %+v, %v", all, err)
	}
	if err := q.Withdraw(r.ctx, out.Name, "op-1"); err != nil {
		t.Error(err)
	}

	var removers []*Remover
	ends := make(chan error, 2)
	ctx, stop := context.WithCancel(r.ctx)
	for _, host := range []string{"h1", "h2"} {
		x := &Remover{Client: r.client(), Lease: OwnLease(kv), Changer: NewChanger(r.cfg, time.Second), Who: Candidate{Host: host, Instance: host}, TTL: 2 * DefaultTTL,
			HostOf: r.HostOf, Every: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
		removers = append(removers, x)
	}
	t.Run("withdrawn between the look and the call", func(t *testing.T) {
		err := campaign(r.ctx, kv, removerPrefix, removers[0].Who, DefaultTTL, func(ctx context.Context, l Leadership) error {
			removers[0].settled, removers[0].said = map[string]time.Time{}, map[string]string{}
			return removers[0].act(ctx, l, stale[0])
		})
		if err == nil || errors.Is(err, ErrLost) {
			t.Errorf("a request that was withdrawn was acted on: %v", err)
		}
		r.listed(out.ID, true)
	})
	for _, x := range removers {
		go func() { ends <- x.Run(ctx) }()
	}

	refused := func(why string, a Annotation, host, want string) {
		t.Helper()
		key := hostsPrefix + host + removeSuffix
		r.put(kv, key, a.write())
		got := r.refusal(kv, host)
		if !strings.Contains(got, want) {
			t.Errorf("%s: refused with %q, want %q", why, got, want)
		}
		r.listed(out.ID, true)
		r.eventually("taken back", func() error { return WithdrawStale(r.ctx, kv, host, "another") })
	}
	good := Annotation{Member: out.ID, Name: out.Name, Peer: peer(out.Name), Operation: "op-1", Term: held.Term(), At: time.Now()}
	with := func(f func(*Annotation)) Annotation {
		a := good
		a.At = time.Now()
		f(&a)
		return a
	}
	leader := r.leader()
	other := r.follower()
	for _, m := range r.now().Members {
		if m.ID != out.ID && m.ID != leader.ID {
			other = m
		}
	}
	// A whole round goes by with one that is only announced.
	r.put(kv, hostsPrefix+out.Name+removeSuffix, with(func(a *Annotation) { a.Held = true }).write())
	r.eventually("clients are to be led off it, says a member's own store", func() error {
		led, err := Leaving(r.ctx, pb.NewKVClient(kv.ActiveConnection()))
		if err == nil && len(led) != 1 {
			err = fmt.Errorf("%v leave", led)
		}
		return err
	})
	refused("beside an announced one", good, other.Name, "is on host "+other.Name)
	if all, err := Removals(r.ctx, kv); err != nil || len(all) != 1 || !all[0].Held || all[0].Refused != "" {
		t.Errorf("the announced one: %+v, %v", all, err)
	}
	r.eventually("taken back", func() error { return WithdrawStale(r.ctx, kv, out.Name, "another") })
	refused("another ID", with(func(a *Annotation) { a.Member = "beef" }), out.Name, "has its name or its peer URL")
	refused("another member's ID", with(func(a *Annotation) { a.Member = other.ID }), out.Name, "has the name")
	refused("another name", with(func(a *Annotation) { a.Name = other.Name }), out.Name, "names member")
	refused("another address", with(func(a *Annotation) { a.Peer = peer(other.Name) }), out.Name, "has the peer URLs")
	refused("on another host", good, other.Name, "is on host "+other.Name)
	refused("an older term (invariant 11)", with(func(a *Annotation) { a.Term-- }), out.Name, "term")
	refused("a term to come", with(func(a *Annotation) { a.Term++ }), out.Name, "term")
	refused("two minutes and more", with(func(a *Annotation) { a.At = a.At.Add(-3 * time.Minute) }), out.Name, "ago, at most 2m0s")
	refused("a clock that is ahead", with(func(a *Annotation) { a.At = a.At.Add(time.Hour) }), out.Name, "compare the clocks")
	refused("it leads", with(func(a *Annotation) { a.Member, a.Name, a.Peer = leader.ID, leader.Name, peer(leader.Name) }), leader.Name, "leadership has to move first")

	// A voter that would remain is frozen (etcd.md 0).
	r.member(other.Name).Signal(syscall.SIGSTOP)
	refused("a frozen voter", with(func(*Annotation) {}), out.Name, "does not answer: "+other.Name)
	r.member(other.Name).Signal(syscall.SIGCONT)
	r.until("it is back", func(ob Observation) bool { m, _ := find(ob.Members, other.ID); return m.Responding })

	// One that nobody can read is nobody's to act on, and is shown.
	r.put(kv, hostsPrefix+out.Name+removeSuffix, `{"member":"`+out.ID+`","MEMBER":"x"}`)
	if all, err := Removals(r.ctx, kv); err != nil || len(all) != 1 || !strings.Contains(all[0].Refused, "cannot be read") || all[0].Operation != "" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := q.Request(r.ctx, uint64(q.term), ask); err == nil {
		t.Error("it was overwritten")
	}
	if err := WithdrawStale(r.ctx, kv, out.Name, ""); err != nil {
		t.Error(err)
	}

	// At last: asked for as it should be; and while it is acted on nobody can take
	// it back.
	var midway []error
	for _, x := range removers {
		x.Changer.Point = func(at string) {
			if at == "before remove" {
				midway = append(midway, q.Withdraw(r.ctx, out.Name, "op-1"), q.Request(r.ctx, uint64(q.term), ask))
			}
		}
	}
	ask.At = time.Now()
	if err := q.Request(r.ctx, uint64(q.term), ask); err != nil {
		t.Fatal(err)
	}
	r.until("the member is gone", func(ob Observation) bool { _, listed := find(ob.Members, out.ID); return !listed })
	r.eventually("taken back once it is done (S028)", func() error { return q.Withdraw(r.ctx, out.Name, "op-1") })
	if len(midway) != 2 || !errors.Is(midway[0], ErrActing) || !errors.Is(midway[1], ErrActing) {
		t.Errorf("midway: %v", midway)
	}
	if all, err := Removals(r.ctx, kv); err != nil || len(all) != 0 {
		t.Errorf("left behind: %+v, %v", all, err)
	}

	// Three are left: no further.
	next := r.follower()
	if err := q.Request(r.ctx, uint64(q.term), membership.Removal{Host: next.Name, Member: next.ID, Operation: "op-2", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := r.refusal(kv, next.Name); !strings.Contains(got, "fewer than 3") {
		t.Errorf("refused with %q", got)
	}
	// A refusal is for ever; asked again it is looked at again.
	if err := q.Request(r.ctx, uint64(q.term), membership.Removal{Host: next.Name, Member: next.ID, Operation: "op-2", At: time.Now()}); err != nil {
		t.Error(err)
	}
	r.refusal(kv, next.Name)

	// The acting one ends: the other takes its place.
	first, err := leaderOf(r.ctx, kv, removerPrefix)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := kv.Leases(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range leases.Leases {
		if strings.HasSuffix(first.key, fmt.Sprintf("/%x", int64(id.ID))) {
			if _, err := kv.Revoke(r.ctx, id.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-ends; !errors.Is(err, ErrLost) {
		t.Errorf("the deposed one ended with %v", err)
	}
	r.eventually("another acts", func() error {
		l, err := leaderOf(r.ctx, kv, removerPrefix)
		if err == nil && l.Host == first.Host {
			err = errors.New("the same")
		}
		return err
	})
	// Whoever lost the Lease asks for nothing and takes nothing back.
	release()
	if err := q.Request(r.ctx, uint64(q.term), ask); !errors.Is(err, lease.ErrLost) {
		t.Errorf("asked without the Lease: %v", err)
	}
	if err := q.Withdraw(r.ctx, next.Name, "op-2"); !errors.Is(err, lease.ErrLost) {
		t.Errorf("took back without the Lease: %v", err)
	}
	r.put(kv, hostsPrefix+next.Name+removeSuffix, with(func(a *Annotation) {
		a.Member, a.Name, a.Peer = next.ID, next.Name, peer(next.Name)
	}).write())
	if got := r.refusal(kv, next.Name); !strings.Contains(got, "nobody holds the Lease") {
		t.Errorf("an operation that is over: %q", got)
	}
	stop()
	if err := <-ends; !errors.Is(err, context.Canceled) {
		t.Errorf("told to stop: %v", err)
	}
}

// A call whose end is not known: nobody may take the request back until it is,
// and another removal controller brings it to its end.
func TestRemoverUnknown(t *testing.T) {
	r := newRig(t, 4)
	kv := r.client()
	held, release := holding(t, r.ctx, kv)
	defer release()
	q := NewRequester(kv, OwnLease(kv), held.Term(), r.urlOf)
	out := r.follower()
	x := r.proxies.at[r.leader().ClientURLs[0]]
	one := &Remover{Client: kv, Lease: OwnLease(kv), Changer: r.Changer, Who: Candidate{Host: "h1", Instance: "1"}, TTL: DefaultTTL, HostOf: r.HostOf, Log: slog.New(slog.DiscardHandler)}
	if err := q.Request(r.ctx, uint64(q.term), membership.Removal{Host: out.Name, Member: out.ID, Operation: "op-1", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(r.ctx)
	r.Point = func(at string) {
		switch at {
		case "before remove":
			x.lose(true, false) // it never arrives
			stop()              // and then the process ends
		case "after remove":
			x.cut()
		}
	}
	if err := one.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r.Point = nil
	all, err := annotations(r.ctx, kv)
	if err != nil || len(all) != 1 || all[0].Acting != "h1" {
		t.Fatalf("the next one has to know: %+v, %v", all, err)
	}
	if err := q.Withdraw(r.ctx, out.Name, "op-1"); !errors.Is(err, ErrActing) {
		t.Errorf("withdrawn while a call may be under way: %v", err)
	}
	// A reason to refuse comes up; it waits until the call of the first has ended.
	two := *one
	two.Who = Candidate{Host: "h2", Instance: "2"}
	two.settled, two.said = map[string]time.Time{}, map[string]string{}
	err = campaign(r.ctx, kv, removerPrefix, two.Who, DefaultTTL, func(ctx context.Context, l Leadership) error {
		old := all[0]
		old.At = old.At.Add(-time.Hour)
		two.settled[out.Name] = time.Now().Add(time.Hour)
		if err := two.act(ctx, l, old); err == nil || !strings.Contains(err.Error(), "still be under way") {
			t.Errorf("refused while a call may be under way: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	ctx, stop = context.WithCancel(r.ctx)
	defer stop()
	end := make(chan error, 1)
	go func() { end <- two.Run(ctx) }()
	r.until("the member is gone", func(ob Observation) bool { _, listed := find(ob.Members, out.ID); return !listed })
	r.eventually("taken back", func() error { return q.Withdraw(r.ctx, out.Name, "op-1") })
	stop()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	short := two
	short.TTL = time.Second
	if err := short.Run(r.ctx); err == nil || !strings.Contains(err.Error(), "TTL") {
		t.Errorf("a TTL that a call outlasts: %v", err)
	}
}
