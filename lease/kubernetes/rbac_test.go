package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbac "k8s.io/api/rbac/v1"

	"suffrage/apiserver"
	"suffrage/lease"
	"suffrage/lease/kubernetes"
	"suffrage/mesh-tests/kubetest"
)

const deployed = "../../deploy/kubernetes/"

func roles(namespace string) string {
	return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles"
}

// deploy/kubernetes is enough for all that a store does, and with one verb less
// something of it is forbidden. No Lease is there before, so that it is made too.
func TestDeployedRules(t *testing.T) {
	t.Parallel()
	ns := apiserver.DefaultConfig().Namespace
	user := "system:serviceaccount:" + ns + ":suffrage"
	s := kubetest.New(t, user)
	s.Apply(t, deployed+"namespace.yaml")
	var role rbac.Role
	if err := json.Unmarshal(s.Apply(t, deployed+"rbac.yaml")[roles(ns)+"/suffrage"], &role); err != nil {
		t.Fatal(err)
	}
	if role.Name == "" || role.Namespace != ns {
		t.Fatalf("no Role in namespace %s", ns)
	}
	st := open(t, s, user, ns)
	settle(t, s, st, role, nil)

	verbs := 0
	for i, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			verbs++
			less := role.DeepCopy()
			less.Rules[i].Verbs = slices.DeleteFunc(less.Rules[i].Verbs, func(v string) bool { return v == verb })
			if len(less.Rules[i].Verbs) == 0 {
				less.Rules = slices.Delete(less.Rules, i, i+1)
			}
			settle(t, s, st, *less, errForbidden)
		}
	}
	if verbs != 3 {
		t.Errorf("%d verbs in the rules, want list, patch and create", verbs)
	}
	settle(t, s, st, role, nil) // it was the verb each time

	// Nothing else: no other Lease, no other namespace.
	for _, other := range []string{
		leases(ns), leases(ns) + "/other", leases("kube-system") + "/" + lease.Name, "/api/v1/namespaces/" + ns + "/secrets", "/api/v1/pods",
	} {
		if code := s.As(t, user, other); code != 403 {
			t.Errorf("%s may read %s: %d", user, other, code)
		}
	}
}

var errForbidden = errors.New("forbidden")

// settle replaces the rules and waits until all that a store does ends as wanted:
// the API server learns of rules by a watch.
func settle(t *testing.T, s *kubetest.Server, st *kubernetes.Store, role rbac.Role, want error) {
	t.Helper()
	object, err := json.Marshal(role)
	if err != nil {
		t.Fatal(err)
	}
	s.Put(t, roles(role.Namespace)+"/"+role.Name, string(object))
	for until := time.Now().Add(kubetest.Patience); ; time.Sleep(100 * time.Millisecond) {
		s.Delete(t, path(role.Namespace))
		got := everything(patient(t), st)
		if want == nil && got == nil || want != nil && got != nil && strings.Contains(got.Error(), want.Error()) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("with the rules %v a store gave %v, want %v", role.Rules, got, want)
		}
	}
}

// everything is all that a store does.
func everything(ctx context.Context, st *kubernetes.Store) error {
	if err := lease.Create(ctx, st, timing().Duration); err != nil {
		return err
	}
	seen, err := st.Get(ctx)
	if err != nil {
		return err
	}
	if seen.Version == "" {
		return fmt.Errorf("what was created is not there")
	}
	seen.Record.Renewals++
	_, err = st.Put(ctx, seen.Record, seen.Version)
	return err
}
