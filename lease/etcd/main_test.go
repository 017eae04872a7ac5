package etcd_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"suffrage/fitness"
	"suffrage/lease"
	"suffrage/member/membertest"
	"suffrage/membership/etcd"
)

func TestMain(m *testing.M) {
	membertest.Main()
	contenderMain()
	goleak.VerifyTestMain(m)
}

// timing is wider than three members on loopback need, for a busy machine: Stop
// is 4.8 s.
func timing() lease.Config {
	cfg := lease.DefaultConfig()
	cfg.Duration, cfg.Renew, cfg.ElectionTimeout = fitness.Duration(10*time.Second), fitness.Duration(500*time.Millisecond), fitness.Duration(100*time.Millisecond)
	return cfg
}

func dial(endpoints []string) (*clientv3.Client, error) {
	cfg := etcd.DefaultConfig()
	cfg.Endpoints = endpoints
	return cfg.Client()
}

func clientOf(t *testing.T, c *membertest.Cluster) *clientv3.Client {
	t.Helper()
	cl, err := dial(c.Endpoints())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*membertest.Patience)
	t.Cleanup(cancel)
	return ctx
}
