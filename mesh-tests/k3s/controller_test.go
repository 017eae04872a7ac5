package k3s_test

import (
	"testing"

	core "k8s.io/api/core/v1"
)

// TestControllerRemovesItself: three servers with all roles, of which the first
// has led the removal controller and etcd since the beginning. Its member is
// removed before its Node is told; another server's controller finds no match
// once the Lease has run out, and tells it. Then it serves without etcd for a
// while, and with it again.
func TestControllerRemovesItself(t *testing.T) {
	f := quick(t, 3, false)
	before := f.member(t, "h1")
	f.annotate(t, "h1", map[string]any{askRemove: "true"})
	f.untilMembers(t, "h2", "h2", "h3")
	f.untilBuried(t, "h1")
	f.until(t, "the Node is told", "h1", func(n *core.Node) bool { return n.Annotations[saysRemoved] == before })
	f.reason(t, "h1", "NotAMember")

	h := f.Host("h1") // it joins h2: cluster-init is gone from its configuration
	if err := h.DropIn("role.yaml", "disable-etcd: true\n"); err != nil {
		t.Fatal(err)
	}
	f.Start(h)
	f.until(t, "it has no etcd role", "h1", func(n *core.Node) bool {
		return n.Labels[labelETCD] == "" && n.Annotations[saysName] == "" && n.Annotations[saysAddress] == ""
	})
	f.untilMembers(t, "h2", "h2", "h3")
	f.Stop(h)
	if err := h.DropIn("role.yaml", ""); err != nil {
		t.Fatal(err)
	}
	f.Start(h)
	f.WaitVoting(h)
	f.untilMembers(t, "h2", "h1", "h2", "h3")
	f.reason(t, "h1", "MemberNotLearner")
}
