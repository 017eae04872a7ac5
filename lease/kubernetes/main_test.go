package kubernetes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"suffrage/fitness"
	"suffrage/lease"
	"suffrage/lease/kubernetes"
	"suffrage/member/membertest"
	"suffrage/membership/etcd"
	"suffrage/mesh-tests/kubetest"
)

func TestMain(m *testing.M) {
	membertest.Main()
	goleak.VerifyTestMain(m)
}

// timing is wider than a server on loopback needs, for a busy machine: Stop is
// 12.8 s.
func timing() lease.Config {
	cfg := lease.DefaultConfig()
	cfg.Duration, cfg.Renew, cfg.ElectionTimeout = fitness.Duration(18*time.Second), fitness.Duration(2*time.Second), fitness.Duration(100*time.Millisecond)
	return cfg
}

// patiently is for what has to outlast a server that starts again: Stop is
// nearly ten minutes.
func patiently() lease.Config {
	cfg := timing()
	cfg.Duration = fitness.Duration(10 * time.Minute)
	return cfg
}

// open is a store of the user's in a namespace.
func open(t *testing.T, s *kubetest.Server, user, namespace string) *kubernetes.Store {
	t.Helper()
	st, err := kubernetes.New(s.Config(user), namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// path is that of the Lease in the API.
func path(namespace string) string { return leases(namespace) + "/" + lease.Name }

func leases(namespace string) string {
	return fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", namespace)
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*kubetest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// etcdOf is a client of the etcd below.
func etcdOf(t *testing.T, s *kubetest.Server) *clientv3.Client {
	t.Helper()
	cfg := etcd.DefaultConfig()
	cfg.Endpoints = s.Etcd.Endpoints()
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}
