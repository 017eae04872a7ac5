package k3s_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
)

// TestMembers is what K3s does with its members, on one fleet: three servers with
// the etcd role, and one for the API.
func TestMembers(t *testing.T) {
	f := quick(t, 3, true)

	f.step("servers are known by their Nodes", func(t *testing.T) {
		for _, h := range []string{"h1", "h2", "h3"} {
			name, address := f.member(t, h), f.Host(h).Address.String()
			f.until(t, h+" has its labels and annotations", h, func(n *core.Node) bool {
				return n.Labels[labelETCD] == "true" && n.Annotations[saysName] == name && n.Annotations[saysAddress] == address
			})
			f.reason(t, h, "MemberNotLearner")
		}
		f.until(t, "c1 has no etcd", "c1", func(n *core.Node) bool {
			return n.Labels[labelETCD] == "" && n.Labels["node-role.kubernetes.io/control-plane"] == "true" && voter(n).Reason == ""
		})
	})

	f.step("a condition that stays is not refreshed", func(t *testing.T) {
		var first core.NodeCondition
		f.until(t, "h1 has a condition", "h1", func(n *core.Node) bool { first = voter(n); return first.Reason != "" })
		time.Sleep(2 * time.Second) // four looks; what is refreshed at each of them would show
		f.until(t, "h1 is read again", "h1", func(n *core.Node) bool {
			if c := voter(n); !c.LastHeartbeatTime.Equal(&first.LastHeartbeatTime) {
				t.Errorf("refreshed after %v", c.LastHeartbeatTime.Sub(first.LastHeartbeatTime.Time))
			}
			return true
		})
	})

	f.step("a fourth joins and is promoted", func(t *testing.T) {
		f.Start(f.Add("h4"))
		f.WaitVoting(f.Host("h4"))
		f.WaitLog(f.Host("h4"), "added as a learner")
		f.untilMembers(t, "h1", "h1", "h2", "h3", "h4")
		f.reason(t, "h4", "MemberNotLearner")
	})

	f.step("a second member of the same node name is refused", func(t *testing.T) {
		d := f.Add("twin")
		f.Configure(d, "server: "+f.Host("h1").ServerURL()+"\nnode-name: h2\ndisable-apiserver: true\n")
		f.Start(d)
		f.WaitExit(d)
		f.WaitLog(d, "duplicate node name found")
		if _, err := os.Stat(filepath.Join(d.Datastore(), "name")); !os.IsNotExist(err) {
			t.Errorf("its member name is kept: %v", err)
		}
		f.untilMembers(t, "h1", "h1", "h2", "h3", "h4")
	})

	f.step("a member that stopped is unhealthy", func(t *testing.T) {
		f.Stop(f.Host("h4"))
		f.reason(t, "h4", "Unhealthy")
		f.Start(f.Host("h4"))
		f.WaitVoting(f.Host("h4"))
		f.reason(t, "h4", "MemberNotLearner")
	})

	before := f.member(t, "h4")
	f.step("an annotation removes a member", func(t *testing.T) {
		f.annotate(t, "h4", map[string]any{askRemove: "true"})
		f.untilMembers(t, "h1", "h1", "h2", "h3")
		// In the second before it ends, a server that reaches another one's API puts
		// the other annotations back.
		f.until(t, "it is told", "h4", func(n *core.Node) bool {
			return n.Annotations[saysRemoved] == before && n.Annotations[askRemove] == "true"
		})
		f.reason(t, "h4", "NotAMember")
	})

	f.step("the removed server leaves a tombstone and ends", func(t *testing.T) { f.untilBuried(t, "h4") })

	f.step("its next start rejoins as another member", func(t *testing.T) {
		h := f.Host("h4")
		f.Start(h)
		f.WaitVoting(h)
		if now := f.member(t, "h4"); now == before {
			t.Errorf("it has its old name %s", now)
		}
		if moved, _ := filepath.Glob(h.Datastore() + "-backup-*"); len(moved) != 1 {
			t.Errorf("datastores moved away: %v", moved)
		}
		f.untilMembers(t, "h1", "h1", "h2", "h3", "h4")
		// The controller takes its old request back as soon as it sees the new name.
		f.until(t, "the old request is taken back", "h4", func(n *core.Node) bool {
			_, removed := n.Annotations[saysRemoved]
			return n.Annotations[askRemove] == "false" && !removed && n.Annotations[saysName] == f.member(t, "h4")
		})
	})

	f.step("with a stale removed-node-name a request vanishes", func(t *testing.T) {
		f.annotate(t, "h4", map[string]any{askRemove: "true", saysRemoved: before})
		f.until(t, "it vanishes", "h4", func(n *core.Node) bool {
			_, removed := n.Annotations[saysRemoved]
			return n.Annotations[askRemove] == "false" && !removed
		})
		f.untilMembers(t, "h1", "h1", "h2", "h3", "h4")
	})

	f.step("no match counts as success", func(t *testing.T) {
		// As long as the server runs it corrects its Node.
		f.Stop(f.Host("h4"))
		f.annotate(t, "h4", map[string]any{askRemove: "true", saysAddress: "10.9.8.7"})
		f.until(t, "it is told", "h4", func(n *core.Node) bool {
			_, name := n.Annotations[saysName]
			_, address := n.Annotations[saysAddress]
			return n.Annotations[saysRemoved] == f.member(t, "h4") && !name && !address
		})
		f.untilMembers(t, "h1", "h1", "h2", "h3", "h4")
	})

	f.step("deleting the Node removes the member", func(t *testing.T) {
		f.annotate(t, "h4", map[string]any{
			askRemove: nil, saysRemoved: nil, saysName: f.member(t, "h4"), saysAddress: f.Host("h4").Address.String(),
		})
		f.Wait("the Node is deleted", func(ctx context.Context) error { return f.DeleteNode(ctx, "h4") })
		f.untilMembers(t, "h1", "h1", "h2", "h3")
		f.Wait("it is gone", func(ctx context.Context) error {
			if _, err := f.Node(ctx, "h4"); err == nil || !strings.Contains(err.Error(), "not found") {
				return errStill
			}
			return nil
		})
	})

	f.step("removed with cluster-init it comes up as a cluster of its own", func(t *testing.T) {
		h := f.Host("h4")
		f.Configure(h, "cluster-init: true\ndisable-apiserver: true\n") // and no server
		f.Start(h)                                                      // it learns from the others that it was removed
		f.untilBuried(t, "h4")
		f.Start(h)
		f.WaitVoting(h)
		f.untilMembers(t, "h4", "h4")
		f.untilMembers(t, "h1", "h1", "h2", "h3")
	})
}
