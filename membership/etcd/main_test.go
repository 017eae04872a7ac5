package etcd_test

import (
	"context"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

func TestMain(m *testing.M) {
	membertest.Main()
	goleak.VerifyTestMain(m)
}

func configOf(c *membertest.Cluster) etcd.Config {
	cfg := etcd.DefaultConfig()
	cfg.Endpoints, cfg.CA, cfg.Cert, cfg.Key = c.Endpoints(), c.CA, c.Cert, c.Key
	return cfg
}

func clientOf(t *testing.T, c *membertest.Cluster) *clientv3.Client {
	t.Helper()
	cl, err := configOf(c).Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// see observes until it is as the test says, and gives that observation.
func see(t *testing.T, o *etcd.Observer, what string, ok func(etcd.Observation) bool) etcd.Observation {
	t.Helper()
	ctx := patient(t)
	for {
		ob := o.Observe(ctx)
		if ok(ob) {
			return ob
		}
		if ctx.Err() != nil {
			t.Fatalf("never seen: %s; last: %+v", what, ob)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func named(ob etcd.Observation, host string) membership.Member {
	i := slices.IndexFunc(ob.Members, func(m membership.Member) bool { return m.Host == host })
	if i < 0 {
		return membership.Member{}
	}
	return ob.Members[i]
}

func respond(ob etcd.Observation, hosts ...string) bool {
	for _, h := range hosts {
		if !named(ob, h).Responding {
			return false
		}
	}
	return ob.Error == ""
}
