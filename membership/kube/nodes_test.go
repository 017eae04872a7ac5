package kube_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"suffrage/membership/kube"
	"suffrage/mesh-tests/kubetest"
)

const nodes = "/api/v1/nodes"

// What kubectl annotate writes is read back, through pages, under the rules of
// deploy/kubernetes and not without them (TestWriterRules has the verbs).
func TestNodes(t *testing.T) {
	t.Parallel()
	const user = "system:serviceaccount:suffrage:suffrage"
	s := kubetest.New(t, user)
	for i := range 70 { // more than one page
		s.Create(t, nodes, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"h%d"}}`, i+1))
	}
	n, err := kube.New(s.Config(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	if _, _, err := n.Marks(patient(t)); err == nil || !strings.Contains(err.Error(), "deploy/kubernetes") {
		t.Errorf("without rules it gave %v", err)
	}
	s.Apply(t, "../../deploy/kubernetes/namespace.yaml")
	s.Apply(t, "../../deploy/kubernetes/rbac.yaml")
	until(t, func() error { _, _, err := n.Marks(patient(t)); return err })

	s.Patch(t, nodes+"/h4?fieldManager=kubectl-annotate", `{"metadata":{"annotations":{"suffrage.io/eligible":"true","suffrage.io/eligible-reason":"wired, SSD"}}}`)
	s.Patch(t, nodes+"/h70", `{"metadata":{"annotations":{"suffrage.io/pinned":"true"}}}`)
	marks, _, err := n.Marks(patient(t))
	if err != nil || len(marks) != 2 || marks["h4"].Word() != "eligible" || marks["h70"].Word() != "pinned" {
		t.Fatalf("got %v (%v), want h4 eligible and h70 pinned", marks, err)
	}
	if e := marks["h4"].Eligible; e.Reason != "wired, SSD" || !strings.HasSuffix(e.By, "its Node") {
		t.Errorf("got %+v, want the reason, and its Node", e)
	}
	if e := marks["h4"].Eligible; e.By != "kubectl-annotate on its Node" {
		t.Log("the API server kept no managed fields:", e.By)
	}

	s.Patch(t, nodes+"/h70", `{"metadata":{"annotations":{"suffrage.io/pinned":"yes"}}}`)
	if marks, _, err := n.Marks(patient(t)); err == nil || !strings.Contains(err.Error(), "Node h70: annotation suffrage.io/pinned") || marks["h4"].Word() != "eligible" {
		t.Errorf("nonsense gave %v (%v), want an error that names it, and the others", marks, err)
	}
	// Cluster API's at work, which a label of a worker's is not.
	s.Patch(t, nodes+"/h2", `{"metadata":{"annotations":{"cluster.x-k8s.io/owner-kind":"KubeadmControlPlane"}}}`)
	s.Patch(t, nodes+"/h3", `{"metadata":{"annotations":{"cluster.x-k8s.io/owner-kind":"MachineSet"}}}`)
	if _, foreign, _ := n.Marks(patient(t)); len(foreign) != 1 || foreign[0].Host != "h2" || foreign[0].Who != "Cluster API" {
		t.Errorf("signs of others: %+v", foreign)
	}
	// A Node that is made anew says nothing any more.
	s.Delete(t, nodes+"/h70")
	s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"h70"}}`)
	s.Patch(t, nodes+"/h4", `{"metadata":{"annotations":{"suffrage.io/eligible":null}}}`)
	if marks, _, err := n.Marks(patient(t)); err != nil || len(marks) != 0 {
		t.Errorf("got %v (%v), want nothing", marks, err)
	}
}

func until(t *testing.T, done func() error) {
	t.Helper()
	for end := time.Now().Add(kubetest.Patience); ; time.Sleep(100 * time.Millisecond) {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), kubetest.Patience)
	t.Cleanup(cancel)
	return ctx
}
