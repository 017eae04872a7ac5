package founding

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/member"
	"suffrage/membership/etcd"
	"suffrage/membership/host"
	"suffrage/snapshots"
)

// A datastore that appears between the last look and the making is nobody's
// half-built one: it must be neither marked as the new cluster's nor moved.
func TestResetFindsADatastoreThatHasJustCome(t *testing.T) {
	dir := t.TempDir()
	members := map[string]string{"h1": "http://127.0.0.1:2380"}
	old := filepath.Join(dir, "old")
	if err := member.Create(old, "h1", members, "old"); err != nil {
		t.Fatal(err)
	}
	saved, err := snapshots.Copy(t.Context(), old, "h1", filepath.Join(dir, "snapshots"))
	if err != nil {
		t.Fatal(err)
	}
	f := Founder{Host: "h1", Data: filepath.Join(dir, "data"), Datastore: filepath.Join(dir, "data", "etcd"), Snapshots: filepath.Join(dir, "snapshots"),
		// Nothing listens on port 1.
		Places: []Place{{Host: "h2", Peer: "http://127.0.0.1:1", Client: "http://127.0.0.1:1"}}}
	f.Look = Look{Self: members["h1"], Etcd: etcd.DefaultConfig()}
	f.Look.Etcd.Timeout = fitness.Duration(10 * time.Second)
	looks := 0
	f.Look.Standing = func(context.Context, string) (host.Standing, error) {
		if looks++; looks == 2 { // this host has been looked at
			return host.Standing{}, member.Create(f.Datastore, "h1", members, "somebody's")
		}
		return host.Standing{}, nil
	}
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	o := ResetOptions{From: saved.Path, Aside: true}
	p, err := f.PlanReset(t.Context(), o)
	if err != nil || len(p.Refusals) > 0 || p.Aside {
		t.Fatalf("%v %v, aside %t", err, p.Refusals, p.Aside)
	}
	if _, err := f.Reset(t.Context(), p, o, func(string) {}); !errors.Is(err, ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	if c, err := host.ClusterRecord(f.Data); c != nil || err != nil {
		t.Errorf("it is recorded: %+v, %v", c, err)
	}
	want, err := member.IdentityIn(members, "h1", "somebody's")
	if err != nil {
		t.Fatal(err)
	}
	if is, err := member.IdentityOf(f.Datastore); err != nil || is != want {
		t.Errorf("the datastore is %v, want %v; %v", is, want, err)
	}
}
