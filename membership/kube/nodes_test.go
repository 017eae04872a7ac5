package kube_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
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
	if _, err := n.Look(patient(t)); err == nil || !strings.Contains(err.Error(), "deploy/kubernetes") {
		t.Errorf("without rules it gave %v", err)
	}
	s.Apply(t, "../../deploy/kubernetes/namespace.yaml")
	s.Apply(t, "../../deploy/kubernetes/rbac.yaml")
	until(t, func() error { _, err := n.Look(patient(t)); return err })

	s.Patch(t, nodes+"/h4?fieldManager=kubectl-annotate", `{"metadata":{"annotations":{"suffrage.io/eligible":"true","suffrage.io/eligible-reason":"wired, SSD"}}}`)
	s.Patch(t, nodes+"/h70", `{"metadata":{"annotations":{"suffrage.io/pinned":"true"}}}`)
	look, err := n.Look(patient(t))
	marks := look.Marks
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
	if look, err := n.Look(patient(t)); err == nil || !strings.Contains(err.Error(), "Node h70: annotation suffrage.io/pinned") || look.Marks["h4"].Word() != "eligible" {
		t.Errorf("nonsense gave %v (%v), want an error that names it, and the others", look.Marks, err)
	}
	// Cluster API's at work, which a label of a worker's is not.
	s.Patch(t, nodes+"/h2", `{"metadata":{"annotations":{"cluster.x-k8s.io/owner-kind":"KubeadmControlPlane"}}}`)
	s.Patch(t, nodes+"/h3", `{"metadata":{"annotations":{"cluster.x-k8s.io/owner-kind":"MachineSet"}}}`)
	if look, _ := n.Look(patient(t)); len(look.Foreign) != 1 || look.Foreign[0].Host != "h2" || look.Foreign[0].Who != "Cluster API" {
		t.Errorf("signs of others: %+v", look.Foreign)
	}
	// A Node that is made anew says nothing any more.
	s.Delete(t, nodes+"/h70")
	s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"h70"}}`)
	s.Patch(t, nodes+"/h4", `{"metadata":{"annotations":{"suffrage.io/eligible":null}}}`)
	if look, err := n.Look(patient(t)); err != nil || len(look.Marks) != 0 {
		t.Errorf("got %v (%v), want nothing", look.Marks, err)
	}
}

// What a kubelet and K3s write of a Node's state is read, with what nobody knows as
// Unknown; a Node without conditions says nothing. The rules of deploy/kubernetes do,
// and Nodes of the size that Kubernetes gives them fit.
func TestConditions(t *testing.T) {
	t.Parallel()
	const user = "system:serviceaccount:suffrage:suffrage"
	s := kubetest.New(t, user)
	s.Apply(t, "../../deploy/kubernetes/namespace.yaml")
	s.Apply(t, "../../deploy/kubernetes/rbac.yaml")
	image := `,{"names":["` + strings.Repeat("registry.example/path/", 20) + `"],"sizeBytes":1}`
	// A kubelet names no more.
	images := strings.Repeat(image, 50)[1:]
	for i := range 25 { // more than one page
		h := fmt.Sprintf("h%d", i+1)
		s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+h+`"}}`)
		s.Patch(t, nodes+"/"+h+"/status", `{"status":{"images":[`+images+`]}}`)
	}
	since := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for host, conditions := range map[string]string{
		"h1":  `{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True","reason":"KubeletReady"},{"type":"EtcdIsVoter","status":"True","reason":"MemberNotLearner"}`,
		"h25": `{"type":"Ready","status":"False","reason":"KubeletNotReady","lastTransitionTime":"2026-07-01T12:00:00Z"}`,
		"h3":  `{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}`,
		"h4":  `{"type":"MemoryPressure","status":"True"}`,
	} {
		s.Patch(t, nodes+"/"+host+"/status", `{"status":{"conditions":[`+conditions+`]}}`)
	}
	n, err := kube.New(s.Config(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	var look kube.Look
	until(t, func() error { look, err = n.Look(patient(t)); return err }) // the rules count a moment later
	if len(look.States) != 25 {
		t.Fatalf("%d states, want 25", len(look.States))
	}
	if h := look.States["h1"]; h.Ready == nil || !h.Ready.Is() || h.EtcdIsVoter == nil || !h.EtcdIsVoter.Is() {
		t.Errorf("h1: %+v, want Ready and EtcdIsVoter", h)
	}
	want := membership.Condition{Status: "False", Reason: "KubeletNotReady", Since: since}
	if h := look.States["h25"]; h.Ready == nil || *h.Ready != want || h.EtcdIsVoter != nil {
		t.Errorf("h25: %+v, want %s", h, want)
	}
	if h := look.States["h3"]; h.Ready == nil || h.Ready.Is() || h.Ready.Status != "Unknown" {
		t.Errorf("h3: %+v, want Unknown", h)
	}
	if h := look.States["h4"]; h != (membership.Node{}) {
		t.Errorf("h4: %+v, want that nothing is said", h)
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
