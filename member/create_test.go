package member_test

import (
	"testing"

	"suffrage/member"
	"suffrage/member/membertest"
)

// What is computed beforehand, what is on the disk and what etcd says are one.
func TestIdentity(t *testing.T) {
	c := membertest.New(t, membertest.Options{})
	clusters := map[string]bool{}
	members := map[string]bool{}
	for _, m := range c.Members {
		want, err := member.IdentityIn(m.Config.InitialCluster, m.Name, "suffrage")
		if err != nil {
			t.Fatal(err)
		}
		got, err := member.IdentityOf(m.Config.DataDir)
		if err != nil || got != want {
			t.Errorf("%s: computed %+v, on the disk %+v (%v)", m.Name, want, got, err)
		}
		clusters[got.Cluster], members[got.Member] = true, true
	}
	if len(clusters) != 1 || len(members) != 3 {
		t.Errorf("clusters %v, members %v", clusters, members)
	}
	if _, err := member.IdentityOf(t.TempDir()); err == nil {
		t.Error("an empty directory has an identity")
	}
}
