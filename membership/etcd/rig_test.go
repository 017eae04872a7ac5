package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/fitness"
	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/control"
)

// rig is a cluster, a proxy before each client port, and a Changer.
type rig struct {
	t *testing.T
	*membertest.Cluster
	*Changer
	proxies *proxies
	ctx     context.Context
}

func newRig(t *testing.T, size int) *rig {
	t.Helper()
	p := newProxies(t)
	c := membertest.New(t, membertest.Options{Size: size, Set: p.set})
	ctx, cancel := context.WithTimeout(t.Context(), 3*membertest.Patience)
	t.Cleanup(cancel)
	cfg := DefaultConfig()
	cfg.Endpoints, cfg.Timeout = c.Endpoints(), fitness.Duration(3*time.Second)
	r := &rig{t: t, Cluster: c, Changer: NewChanger(cfg, time.Second), proxies: p, ctx: ctx}
	r.until("all well", func(ob Observation) bool {
		return !slices.ContainsFunc(ob.Members, func(m membership.Member) bool { return !m.Responding })
	})
	return r
}

// in is the rig in a subtest.
func (r *rig) in(t *testing.T) *rig {
	sub := *r
	sub.t = t
	return &sub
}

// now looks past the proxies.
func (r *rig) now() Observation {
	cfg := r.cfg
	cfg.Endpoints = nil
	for _, e := range r.cfg.Endpoints {
		cfg.Endpoints = append(cfg.Endpoints, direct(e))
	}
	return NewObserver(cfg, Options{HostOf: r.HostOf}).Observe(r.ctx)
}

func (r *rig) until(what string, ok func(Observation) bool) Observation {
	r.t.Helper()
	for {
		ob := r.now()
		if ob.Error == "" && ok(ob) {
			return ob
		}
		if r.ctx.Err() != nil {
			r.t.Fatalf("never: %s; last %+v", what, ob)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// calm asks again for as long as time alone may help.
func (r *rig) calm(what string, f func() error) {
	r.t.Helper()
	for {
		err := f()
		if err == nil {
			return
		}
		var rejected *RejectedError
		if !errors.As(err, &rejected) || !rejected.Retry || r.ctx.Err() != nil {
			r.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// settled asks again while a busy machine gives another calm rejection than the
// one that is meant.
func (r *rig) settled(meant error, f func() error) error {
	for {
		err := f()
		var rejected *RejectedError
		if !errors.As(err, &rejected) || !rejected.Retry || errors.Is(err, meant) || r.ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (r *rig) rejected(why string, err, want error, retry bool) {
	r.t.Helper()
	var got *RejectedError
	if !errors.As(err, &got) || !errors.Is(err, want) || !errors.Is(err, ErrRejected) || errors.Is(err, control.ErrUnknown) {
		r.t.Errorf("%s: got %v, want it rejected: %v", why, err, want)
	} else if got.Retry != retry {
		r.t.Errorf("%s: retry is %v: %v", why, got.Retry, err)
	}
}

func (r *rig) unknown(why string, err error) {
	r.t.Helper()
	if !errors.Is(err, control.ErrUnknown) || errors.Is(err, ErrRejected) {
		r.t.Errorf("%s: got %v, want it unknown", why, err)
	}
}

// id is the member of a host.
func (r *rig) id(host string) string {
	r.t.Helper()
	for _, m := range r.now().Members {
		if m.Host == host || slices.Contains(m.PeerURLs, host) {
			return m.ID
		}
	}
	r.t.Fatalf("%s is not listed", host)
	return ""
}

func (r *rig) leader() membership.Member {
	r.t.Helper()
	ob := r.until("one leads", func(ob Observation) bool { return (membership.View{Members: ob.Members}).Leader() != "" })
	m, _ := find(ob.Members, membership.View{Members: ob.Members}.Leader())
	return m
}

func (r *rig) member(name string) *membertest.Member {
	i := slices.IndexFunc(r.Members, func(m *membertest.Member) bool { return m.Name == name })
	return r.Members[i]
}

// follower is one of the first voters that does not lead.
func (r *rig) follower() membership.Member {
	leader := r.leader()
	for _, m := range r.now().Members {
		if !m.Learner && m.ID != leader.ID && m.Host != "" {
			return m
		}
	}
	r.t.Fatal("no follower")
	return membership.Member{}
}

// raw makes one call to one member, without any look before.
func (r *rig) raw(to membership.Member, op string, f func(context.Context, *Conn) error) error {
	s := scene{Observation: Observation{Reached: map[string]string{to.ID: direct(to.ClientURLs[0])}}, op: op, subject: "it", leader: to}
	return r.call(r.ctx, s, f)
}

func number(t *testing.T, id string) (n uint64) {
	t.Helper()
	if _, err := fmt.Sscanf(id, "%x", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// client passes no proxy.
func (r *rig) client() *clientv3.Client {
	r.t.Helper()
	cfg := r.cfg
	// It leaves a frozen member after three of these: long before a TTL is over.
	cfg.Timeout = fitness.Duration(time.Second)
	cfg.Endpoints = nil
	for _, e := range r.cfg.Endpoints {
		cfg.Endpoints = append(cfg.Endpoints, direct(e))
	}
	cl, err := cfg.Client()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cl.Close() })
	return cl
}

func (r *rig) urlOf(host string) string {
	for _, m := range r.Members {
		if m.Name == host {
			return m.Config.AdvertisePeer
		}
	}
	return ""
}

// put goes on when the client was with a member that a test froze.
func (r *rig) put(kv clientv3.KV, key, value string) {
	r.t.Helper()
	r.eventually("put "+key, func() error {
		_, err := kv.Put(r.ctx, key, value)
		return err
	})
}

func (r *rig) listed(id string, want bool) {
	r.t.Helper()
	if _, listed := find(r.now().Members, id); listed != want {
		r.t.Errorf("member %s listed: %v", id, listed)
	}
}

func (r *rig) eventually(what string, f func() error) {
	r.t.Helper()
	for {
		err := f()
		if err == nil {
			return
		}
		if r.ctx.Err() != nil {
			r.t.Fatalf("never: %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// refusal waits until the request on a host is refused and gives the reason.
func (r *rig) refusal(kv clientv3.KV, host string) (why string) {
	r.t.Helper()
	r.eventually("refused", func() error {
		all, err := Removals(r.ctx, kv)
		for _, a := range all {
			if a.Host == host && a.Refused != "" {
				why = a.Refused
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("%+v", all))
	})
	return why
}
