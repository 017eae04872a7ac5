package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/membership/kube"
	"suffrage/mesh-tests/kubetest"
)

// server is the Node of a K3s server whose etcd member has the name given.
func server(host, member, address string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"node-role.kubernetes.io/etcd":"true"},
		"annotations":{"etcd.k3s.cattle.io/node-name":%q,"etcd.k3s.cattle.io/node-address":%q}}}`, host, member, address)
}

func patch(annotations map[string]any) string {
	b, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	return string(b)
}

// K3s is asked for a removal on its Node, under the rules of deploy/kubernetes-k3s:
// what it would take for something else is found before, and nothing of a request
// is left behind.
func TestRemovals(t *testing.T) {
	t.Parallel()
	const user = "system:serviceaccount:suffrage:suffrage"
	s := kubetest.New(t, user)
	forK3s(t, s)
	s.Create(t, nodes, server("h3", "h3-0a1b2c3d", "10.0.0.3"))
	n, err := kube.New(s.Config(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	until(t, func() error { _, err := n.Removals(patient(t)); return err })

	lost := errors.New("the Lease was lost")
	checks, check := 0, error(nil)
	q := &kube.Requester{Nodes: n, Term: 7,
		Check: func(context.Context) error { checks++; return check },
		Members: func(context.Context) ([]membership.Member, error) {
			return []membership.Member{{ID: "ab", Name: "h3-0a1b2c3d", PeerURLs: []string{"https://10.0.0.3:2380"}}}, nil
		}}
	r := membership.Removal{Host: "h3", Member: "ab", Operation: "op1", At: time.Now().Truncate(time.Second)}
	ask := func(r membership.Removal) error { return q.Request(patient(t), 7, r) }
	annotations := func() map[string]string {
		var node struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(s.Get(t, nodes+"/h3"), &node); err != nil {
			t.Fatal(err)
		}
		return node.Metadata.Annotations
	}
	none := func(why string) {
		t.Helper()
		if a := annotations(); a["etcd.k3s.cattle.io/remove"] != "" || a["suffrage.io/removal"] != "" {
			t.Errorf("%s: the Node says %v", why, a)
		}
	}

	for _, tt := range []struct {
		why    string
		before map[string]any
		after  map[string]any
		r      membership.Removal
		want   string
	}{
		{"the member's name is another since it joined again", map[string]any{"etcd.k3s.cattle.io/node-name": "h3-ffffffff"}, map[string]any{"etcd.k3s.cattle.io/node-name": "h3-0a1b2c3d"}, r, "would remove nothing and call it done"},
		{"K3s removed it and has not told yet", map[string]any{"etcd.k3s.cattle.io/node-name": nil}, map[string]any{"etcd.k3s.cattle.io/node-name": "h3-0a1b2c3d"}, r, `names the member ""`},
		{"the address is the VPN's", map[string]any{"etcd.k3s.cattle.io/node-address": "100.64.0.3"}, map[string]any{"etcd.k3s.cattle.io/node-address": "10.0.0.3"}, r, "look at node-ip"},
		{"a member that is not listed", nil, nil, membership.Removal{Host: "h3", Member: "cd", Operation: "op1"}, "member cd is not listed"},
		{"a Node that is not there", nil, nil, membership.Removal{Host: "h9", Member: "ab", Operation: "op1"}, "no such Node: h9"},
		{"one that is only announced", nil, nil, membership.Removal{Host: "h3", Member: "ab", Operation: "op1", Held: true}, "none can be announced"},
	} {
		if tt.before != nil {
			s.Patch(t, nodes+"/h3", patch(tt.before))
		}
		if err := ask(tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
		none(tt.why)
		if tt.after != nil {
			s.Patch(t, nodes+"/h3", patch(tt.after))
		}
	}
	if err := q.Request(patient(t), 6, r); err == nil || checks > 0 {
		t.Errorf("with another term: %v; the Lease was asked %d times before anything was to be written", err, checks)
	}
	if check = lost; !errors.Is(ask(r), lost) {
		t.Error("it asked without the Lease")
	}
	none("without the Lease")

	// What an earlier removal left would make this one vanish.
	check = nil
	s.Patch(t, nodes+"/h3", patch(map[string]any{"etcd.k3s.cattle.io/removed-node-name": "h3-0a1b2c3d"}))
	if err := errors.Join(ask(r), ask(r)); err != nil { // twice is once
		t.Fatal(err)
	}
	if a := annotations(); a["etcd.k3s.cattle.io/remove"] != "true" || a["etcd.k3s.cattle.io/removed-node-name"] != "" {
		t.Errorf("asked: the Node says %v", a)
	}
	all, err := n.Removals(patient(t))
	if err != nil || len(all) != 1 || !all[0].At.Equal(r.At) || all[0].Host != "h3" || all[0].Member != "ab" || all[0].Operation != "op1" || all[0].Refused != "" {
		t.Errorf("%+v, %v", all, err)
	}
	other := r
	other.Operation = "op2"
	if err := ask(other); err == nil || !strings.Contains(err.Error(), "suffrage operations withdraw h3") {
		t.Errorf("another operation's: %v", err)
	}
	if err := q.Withdraw(patient(t), "h3", "op2"); err == nil {
		t.Error("another operation took it back")
	}
	check = lost
	if err := q.Withdraw(patient(t), "h3", "op1"); !errors.Is(err, lost) || annotations()["etcd.k3s.cattle.io/remove"] != "true" {
		t.Errorf("without the Lease it was taken back: %v", err)
	}
	check = nil
	if err := errors.Join(q.Withdraw(patient(t), "h3", "op1"), q.Withdraw(patient(t), "h3", "op1"), q.Withdraw(patient(t), "h9", "op1")); err != nil {
		t.Error(err)
	}
	none("taken back")

	// Somebody else's, such as a restored snapshot's, is of no operation; one that is
	// done is none; half of one is refused.
	for _, tt := range []struct {
		why, want string
		a         map[string]any
	}{
		{"by hand", "h3//", map[string]any{"etcd.k3s.cattle.io/remove": "true"}},
		{"done", "", map[string]any{"etcd.k3s.cattle.io/remove": "true", "etcd.k3s.cattle.io/removed-node-name": "h3-0a1b2c3d", "etcd.k3s.cattle.io/node-name": nil}},
		{"taken away by hand", "h3/op1/somebody took the annotation", map[string]any{"suffrage.io/removal": `{"member":"ab","operation":"op1","term":7}`}},
		{"nonsense", "h3//annotation suffrage.io/removal of Node h3 cannot be read", map[string]any{"suffrage.io/removal": "\n{"}},
	} {
		s.Patch(t, nodes+"/h3", patch(tt.a))
		got := ""
		all, err := n.Removals(patient(t))
		for _, r := range all {
			got += r.Host + "/" + r.Operation + "/" + r.Refused
		}
		if err != nil || !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: got %q (%v), want %q", tt.why, got, err, tt.want)
		}
		clear := map[string]any{"etcd.k3s.cattle.io/node-name": "h3-0a1b2c3d"}
		for _, k := range []string{"etcd.k3s.cattle.io/remove", "etcd.k3s.cattle.io/removed-node-name", "suffrage.io/removal"} {
			clear[k] = nil
		}
		s.Patch(t, nodes+"/h3", patch(clear))
	}
}

// A request that was on its way while somebody else wrote to the Node is not done.
func TestRemovalThatIsLate(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t)
	s.Create(t, nodes, server("h3", "h3-0a1b2c3d", "10.0.0.3"))
	n, err := kube.New(s.Config(kubetest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	q := &kube.Requester{Nodes: n, Term: 7,
		Check: func(context.Context) error { // another holder writes, right after this one has asked the Lease
			s.Patch(t, nodes+"/h3", patch(map[string]any{"example.com/x": "y"}))
			return nil
		},
		Members: func(context.Context) ([]membership.Member, error) {
			return []membership.Member{{ID: "ab", Name: "h3-0a1b2c3d", PeerURLs: []string{"https://10.0.0.3:2380"}}}, nil
		}}
	err = q.Request(patient(t), 7, membership.Removal{Host: "h3", Member: "ab", Operation: "op1"})
	if all, _ := n.Removals(patient(t)); err == nil || len(all) > 0 {
		t.Errorf("%v, and %+v is asked for", err, all)
	}
}

// forK3s applies the rules of deploy/kubernetes as deploy/kubernetes-k3s
// changes them.
func forK3s(t *testing.T, s *kubetest.Server) {
	t.Helper()
	for _, file := range []string{"namespace.yaml", "rbac.yaml"} {
		s.Apply(t, "../../deploy/kubernetes/"+file)
	}
	read := func(file string) string {
		b, err := os.ReadFile("../../deploy/kubernetes/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	expression := regexp.MustCompile(`(?m)^ +\["verdict".*"suffrage.io/" \+ n\)$`)
	_, change, found := strings.Cut(read("../kubernetes-k3s/kustomization.yaml"), "value: >-\n")
	policy := expression.ReplaceAllLiteralString(read("nodes.yaml"), "        "+strings.Join(strings.Fields(change), " "))
	if !found || !strings.Contains(policy, "removed-node-name") {
		t.Fatalf("the kustomization does not fit: %s", policy)
	}
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Apply(t, file)
}
