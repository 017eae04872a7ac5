package scenarios

import (
	"encoding/json"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
	"suffrage/mesh-tests/record"
)

// Two voters of three are gone for good. The owner saves what the third one has,
// makes a new cluster of it, and lets the others join: docs/recovery.md. They
// boot with their old datastores first, and do not become the old cluster again.
func TestQuorumLost(t *testing.T) {
	p := five
	p.StallTime = fitness.Duration(10 * time.Second) // two votes are given, with a cooldown between
	f := beginSoon(t, p)
	f.planless(window)
	f.endClients() // nothing is written between the snapshot and the end
	f.put("/kept", "before")

	f.fault("h2 and h3 lose their power", f.Node("h2").PowerOff(t.Context()))
	f.do(f.Node("h3").PowerOff(t.Context()))
	f.until("nobody knows the members", func(s lab.Status) bool { return s.Refuses(membership.MembershipUnknown, "") })
	f.command("h1", "snapshot", "save")
	f.do(f.Node("h1").DisableMember(t.Context()))

	var made struct {
		Cluster string `json:"cluster_id"`
	}
	said := f.command("h1", "cluster", "reset", "--from", "latest", "--aside", "--confirm", "reset to h1; etcd is dead on h2,h3", "-o", "json")
	f.do(json.Unmarshal([]byte(said), &made))
	f.do(f.Node("h1").Enable("member"))
	f.eventually("h1", "cluster", "accept", made.Cluster)
	f.rules = record.Rules{Least: 1, Most: 4, Clusters: 1}
	f.clients()

	for _, old := range []string{"h2", "h3"} {
		f.do(f.Node(old).Boot())
	}
	for _, old := range []string{"h2", "h3"} {
		f.wait("the old member of "+old+" learns that its cluster was replaced", func() bool { return f.Node(old).Logged("member", "cluster-replaced") })
		f.do(f.Node(old).DisableMember(t.Context()))
		f.do(f.Node(old).Aside())
		f.do(f.Node(old).Enable("member"))
	}
	f.target(3)
	f.well(f.voters()...)
	f.ended("three vote again", nil)
	if got := f.get("/kept"); got != "before" {
		f.fail("what was written before is %q", got)
	}
	for _, n := range f.Nodes {
		f.seat = n.Name
		f.until(n.Name+" is of the new cluster", func(s lab.Status) bool { return s.ClusterID == made.Cluster })
	}
	f.same()
}
