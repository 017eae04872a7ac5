package kubernetes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"

	"suffrage/lease"
	"suffrage/lease/kubernetes"
	"suffrage/lease/leasetest"
	"suffrage/mesh-tests/kubetest"
)

const garbage = `{"metadata":{"name":"fleet-regrade","annotations":{"suffrage.io/lease":"{\"term\":1,\"colour\":\"red\"}"}}}`

func TestKubernetesConforms(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t)
	var places atomic.Int64
	leasetest.Suite{Config: timing(), Open: func(t *testing.T) leasetest.Backend {
		ns := fmt.Sprintf("n%d", places.Add(1))
		s.Namespace(t, ns)
		return leasetest.Backend{
			Store:  open(t, s, kubetest.Admin, ns),
			Delete: func() { s.Delete(t, path(ns)) },
			Garble: func() {
				if !s.Create(t, leases(ns), garbage) {
					s.Patch(t, path(ns), garbage)
				}
			},
		}
	}}.Run(t)
}

// What kubectl shows is what the record says.
func TestWhatPeopleSee(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t)
	s.Namespace(t, "fleet")
	st := open(t, s, kubetest.Admin, "fleet")
	if err := lease.Create(patient(t), st, timing().Duration); err != nil {
		t.Fatal(err)
	}
	// Labels of others stay where they are.
	s.Patch(t, path("fleet"), `{"metadata":{"labels":{"team":"blue"},"annotations":{"note":"hands off"}}}`)
	h := lease.Holder{Host: "h1", Instance: "1"}
	look := func() (l coordination.Lease) {
		if err := json.Unmarshal(s.Get(t, path("fleet")), &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	seen, err := st.Get(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	r := seen.Record
	r.Holder, r.Term, r.Renewals, r.Purpose = h, r.Term+1, r.Renewals+1, "swap h1 h4"
	r.Since = time.Date(2026, 7, 1, 12, 0, 0, 123456000, time.UTC)
	version, err := st.Put(patient(t), r, seen.Version)
	if err != nil {
		t.Fatal(err)
	}
	l := look()
	if l.Labels["team"] != "blue" || l.Annotations["note"] != "hands off" {
		t.Errorf("a write took away what others had put there: %v %v", l.Labels, l.Annotations)
	}
	if sp := l.Spec; sp.HolderIdentity == nil || *sp.HolderIdentity != "h1_1" || *sp.LeaseDurationSeconds != 18 || !sp.AcquireTime.Time.Equal(r.Since) || sp.RenewTime.IsZero() {
		t.Errorf("spec is %+v, want that of the record", sp)
	}
	r.Holder, r.Renewals = lease.Holder{}, r.Renewals+1
	if version, err = st.Put(patient(t), r, version); err != nil {
		t.Fatal(err)
	}
	if sp := look().Spec; sp.HolderIdentity != nil {
		t.Errorf("spec is %+v, want no holder once it is released", sp)
	}

	// The version is the mod revision of the key in etcd.
	cl := etcdOf(t, s)
	g, err := cl.Get(patient(t), st.EtcdKey())
	if err != nil || len(g.Kvs) != 1 || strconv.FormatInt(g.Kvs[0].ModRevision, 10) != string(version) {
		t.Errorf("etcd has %+v (%v) at %s, want revision %s", g, err, st.EtcdKey(), version)
	}
}

// What the API server refuses is told from what may have been done.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "nobody")
	s.Namespace(t, "fleet")
	st := open(t, s, kubetest.Admin, "fleet")
	if err := lease.Create(patient(t), st, timing().Duration); err != nil {
		t.Fatal(err)
	}
	seen, err := st.Get(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	next := seen.Record
	next.Renewals++

	unknown, err := kubernetes.New(s.Config("stranger"), "fleet") // a token that the server does not know
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unknown.Close)
	for _, c := range []struct {
		why   string
		store *kubernetes.Store
		old   lease.Version
		says  string
	}{
		{"no rule", open(t, s, "nobody", "fleet"), seen.Version, "deploy/kubernetes"},
		{"no such user", unknown, seen.Version, "not one of this cluster"},
		{"no such namespace", open(t, s, kubetest.Admin, "elsewhere"), "", "kubectl create namespace elsewhere"},
		{"not a version of Kubernetes", st, "seven", "is not a resourceVersion"},
	} {
		_, err := c.store.Put(patient(t), next, c.old)
		if err == nil || errors.Is(err, lease.ErrUnknown) || errors.Is(err, lease.ErrConflict) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s gave %v, want a plain refusal that says %q", c.why, err, c.says)
		}
	}
	if _, err := open(t, s, "nobody", "fleet").Get(patient(t)); err == nil || !strings.Contains(err.Error(), "deploy/kubernetes") {
		t.Errorf("reading without a rule gave %v", err)
	}

	for _, c := range []struct {
		why          string
		freeze, thaw func()
	}{
		{"a frozen API server", func() { s.Signal(syscall.SIGSTOP) }, func() { s.Signal(syscall.SIGCONT) }},
		{"a frozen etcd", func() { s.Etcd.Members[0].Signal(syscall.SIGSTOP) }, func() { s.Etcd.Members[0].Signal(syscall.SIGCONT) }},
	} {
		seen, err := st.Get(patient(t))
		if err != nil {
			t.Fatal(err)
		}
		next := seen.Record
		next.Renewals++
		c.freeze()
		for err == nil { // until the signal arrived
			_, err = st.Get(brief(t))
		}
		_, err = st.Put(brief(t), next, seen.Version)
		if !errors.Is(err, lease.ErrUnknown) {
			t.Errorf("%s gave %v, want ErrUnknown", c.why, err)
		}
		c.thaw()
		s.WaitReady()
		// It is done once or not at all, also when it is sent again.
		for err = lease.ErrUnknown; errors.Is(err, lease.ErrUnknown) && patient(t).Err() == nil; {
			_, err = st.Put(patient(t), next, seen.Version)
		}
		now, e := st.Get(patient(t))
		if e != nil || !now.Record.Equal(next) || err != nil && !errors.Is(err, lease.ErrConflict) {
			t.Errorf("%s: sent again it gave %v, and there is %+v (%v)", c.why, err, now, e)
		}
	}
}
