package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// history makes a database with all that hashing and counting must get right.
func history(t *testing.T, cl *clientv3.Client) {
	t.Helper()
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	for i := range 20 {
		_, err := cl.Put(ctx, fmt.Sprintf("key/%02d", i%8), fmt.Sprint(i))
		do(nil, err)
	}
	_, err := cl.Txn(ctx).Then(clientv3.OpPut("txn/a", "1"), clientv3.OpDelete("key/00"), clientv3.OpPut("txn/b", "2")).Commit()
	do(nil, err)
	_, err = cl.Delete(ctx, "key/01")
	do(nil, err)
	_, err = cl.Put(ctx, "key/01", "again")
	do(nil, err)
	r, err := cl.Delete(ctx, "key/02")
	do(nil, err)
	_, err = cl.Compact(ctx, r.Header.Revision, clientv3.WithCompactPhysical()) // at a tombstone
	do(nil, err)
	_, err = cl.Delete(ctx, "key/03")
	do(nil, err)
	lease, err := cl.Grant(ctx, 3600)
	do(nil, err)
	_, err = cl.Put(ctx, "leased", "x", clientv3.WithLease(lease.ID))
	do(nil, err)
	_, err = cl.Put(ctx, "key/04", "last")
	do(nil, err)
}

// A snapshot from a running member through verifying, the drill, restoring with
// a raised revision, a real member on the result, and a snapshot of that one.
func TestLife(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1, TLS: true})
	m := c.Members[0]
	cl := client(t, c, m)
	history(t, cl)
	src := source(t, c, m)
	dir := filepath.Join(t.TempDir(), "new", "snapshots")
	var told Progress
	before := time.Now().Add(-time.Second)
	s, err := Save(t.Context(), src, dir, func(p Progress) { told = p })
	if err != nil {
		t.Fatal(err)
	}
	compare(t, cl, src, s.Facts)
	if told.Bytes != s.Size || told.Total != s.Size {
		t.Errorf("progress ended at %+v, the file has %d bytes", told, s.Size)
	}
	if s.Time.Before(before) || s.Time.After(time.Now()) || s.Member != src.Member {
		t.Errorf("saved: %+v", s)
	}
	for path, want := range map[string]fs.FileMode{s.Path: 0o600, dir: fs.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v (%v): it holds secrets", path, info.Mode(), want, err)
		}
	}
	// A second one in the same second gets a name of its own.
	again, err := Save(t.Context(), src, dir, nil)
	if err != nil || again.Path == s.Path {
		t.Errorf("second save: %v, %s", err, again.Path)
	}
	files, err := List(dir)
	if err != nil || len(files) != 2 || files[0].Path != again.Path || files[1].Revision != s.Revision || files[1].Host != m.Name || files[1].State != StateSaved {
		t.Errorf("list: %v %+v", err, files)
	}
	if f, err := files[1].Check(t.Context()); err != nil || f.State != StateVerified {
		t.Errorf("check: %v %+v", err, f)
	}
	drill(t, s.Path, s.Facts)

	new := c.Another()
	o := RestoreOptions{Dir: new.Config.DataDir, Name: new.Name, Cluster: map[string]string{new.Name: new.Config.AdvertisePeer}, Bump: 5000}
	r, err := Restore(t.Context(), s.Path, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Revision != s.Revision+5000 {
		t.Errorf("restored to revision %d from %d", r.Revision, s.Revision)
	}
	if _, err := Restore(t.Context(), s.Path, o); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "move this one aside and keep it: mv ") {
		t.Errorf("restore over a directory: %v", err)
	}
	new.Start(false, false)
	new.WaitServing()
	ncl := client(t, c, new)
	get, err := ncl.Get(t.Context(), "key/04")
	if err != nil || len(get.Kvs) != 1 || string(get.Kvs[0].Value) != "last" || get.Header.Revision < r.Revision {
		t.Errorf("read from the restored member: %v %v", get, err)
	}
	if _, err := ncl.Get(t.Context(), "key/04", clientv3.WithRev(s.Revision)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("history before the restore: %v; a client that holds an old revision must be told", err)
	}
	if put, err := ncl.Put(t.Context(), "new", "x"); err != nil || put.Header.Revision <= r.Revision {
		t.Errorf("write to the restored member: %v %v", put, err)
	}
	nsrc := source(t, c, new)
	n, err := Save(t.Context(), nsrc, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n.ClusterID == s.ClusterID {
		t.Errorf("the restored cluster has the old one's ID %s: members of both would mix", n.ClusterID)
	}
	compare(t, ncl, nsrc, n.Facts)
	drill(t, n.Path, n.Facts)
	routine(t, src)
}

// routine is what a keeper does at each time.
func routine(t *testing.T, src Source) {
	reg := prometheus.NewRegistry()
	metrics, err := NewMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	var heldErr, sourceErr error
	r := Routine{Dir: filepath.Join(t.TempDir(), "s"), Keep: 1, Metrics: metrics, Log: quiet,
		Source: func(context.Context) (Source, error) { return src, sourceErr },
		Held:   func(context.Context) ([]string, error) { return held, heldErr }}
	run := func(want int) {
		t.Helper()
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if files, err := List(r.Dir); err != nil || len(files) != want {
			t.Errorf("%d files, want %d: %v", len(files), want, err)
		}
	}
	run(1)
	held = ls(t, r.Dir)
	run(2) // the held one and the newest
	heldErr = errors.New("etcd does not answer")
	run(3) // it is not known what may go
	held, heldErr = nil, nil
	run(1)
	sourceErr = ErrNoVote
	if err := r.Run(t.Context()); !errors.Is(err, ErrNoVote) {
		t.Errorf("without a vote: %v", err)
	}
	sourceErr = errors.New("no answer")
	if err := r.Run(t.Context()); !errors.Is(err, sourceErr) {
		t.Errorf("without etcd: %v", err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		m := f.GetMetric()[0]
		v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
		if f.GetName() == "suffrage_snapshot_failures_total" && v != 1 || v == 0 { // no vote is no failure
			t.Errorf("%s is %v", f.GetName(), v)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	one := map[string]string{"h1": "http://127.0.0.1:2380"}
	if err := os.Mkdir(filepath.Join(dir, "left.partial"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		o    RestoreOptions
		want string
	}{
		{"a relative directory", RestoreOptions{Dir: "d", Name: "h1", Cluster: one}, "an absolute path"},
		{"an empty directory", RestoreOptions{Dir: dir, Name: "h1", Cluster: one}, "makes a new directory"}, // what is mounted there is the owner's
		{"an interrupted one", RestoreOptions{Dir: filepath.Join(dir, "left"), Name: "h1", Cluster: one}, "if none runs: rm -r " + dir + "/left.partial"},
		{"another member", RestoreOptions{Dir: dir + "/d", Name: "h2", Cluster: one}, `member "h2" has no peer URL among [h1]`},
		{"a bump backwards", RestoreOptions{Dir: dir + "/d", Name: "h1", Cluster: one, Bump: -1}, "bump -1"},
		{"a bump to the end", RestoreOptions{Dir: dir + "/d", Name: "h1", Cluster: one, Bump: 1 << 61}, "bump"},
		{"a comma", RestoreOptions{Dir: dir + "/d", Name: "h1", Cluster: map[string]string{"h1": "http://a:1,http://b:1"}}, "comma"},
		{"no file", RestoreOptions{Dir: dir + "/d", Name: "h1", Cluster: one}, "no such file"},
	} {
		_, err := Restore(t.Context(), filepath.Join(dir, "none.db"), tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		if left := ls(t, dir); len(left) != 1 {
			t.Errorf("%s: made %v", tt.name, left)
		}
	}
}

func TestPick(t *testing.T) {
	member := func(id, host string, responding bool) membership.Member {
		return membership.Member{ID: id, Name: host, Host: host, Responding: responding, Leader: "1"}
	}
	view := membership.View{Members: []membership.Member{member("1", "h1", true), member("2", "h2", true), member("3", "h3", true)}}
	learner := member("0", "h4", true)
	learner.Learner = true
	for _, tt := range []struct {
		name, out, want string
		set             func(v *membership.View)
	}{
		{"neither leader nor outgoing", "h3", "h2", nil},
		{"the outgoing one leads", "h1", "h2", nil},
		{"the other does not respond", "h3", "h1", func(v *membership.View) { v.Members[1].Responding = false }}, // better the leader than none
		{"only the outgoing one is left", "h3", "", func(v *membership.View) { v.Members[0].Responding, v.Members[1].Responding = false, false }},
		{"a learner is none", "h3", "h2", func(v *membership.View) { v.Members = append([]membership.Member{learner}, v.Members...) }},
	} {
		v := view
		v.Members = append([]membership.Member(nil), view.Members...)
		if tt.set != nil {
			tt.set(&v)
		}
		if got, ok := Pick(v, tt.out); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// compare holds what the file says against the running member and against etcdutl.
func compare(t *testing.T, cl *clientv3.Client, src Source, f Facts) {
	t.Helper()
	endpoint := src.Etcd.Endpoints[0]
	all, err := cl.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	h, err := cl.HashKV(t.Context(), endpoint, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.Keys != all.Count || f.Revision != all.Header.Revision || f.HashKV != h.Hash || f.CompactRevision != max(0, h.CompactRevision) {
		t.Errorf("the file says %+v; the member: %d keys, revision %d, hash %d, compacted %d", f, all.Count, all.Header.Revision, h.Hash, h.CompactRevision)
	}
}

func drill(t *testing.T, path string, f Facts) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	d, err := Drill(t.Context(), path, scratchCommand(t))
	if err != nil {
		t.Fatal(err)
	}
	if d.Running.Keys != f.Keys || d.Running.Revision != f.Revision || d.Running.HashKV != f.HashKV {
		t.Errorf("drill: %+v", d)
	}
	if left := ls(t, tmp); len(left) != 0 {
		t.Errorf("the drill left %v", left)
	}
	u, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		t.Fatal(err)
	}
	// etcdutl counts the mark of a raised revision as a key.
	if keys := int64(u.TotalKey); u.Revision != f.Revision || keys != f.Keys && keys != f.Keys+1 || u.Version != f.StorageVersion {
		t.Errorf("etcdutl says %+v, we say %+v", u, f)
	}
}

// A learner answers Snapshot too, with what it has so far; and an address may
// lead to another member than the one that was named.
func TestOnlyTheNamedVoter(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	m := c.Members[0]
	cl := client(t, c, m)
	other := c.Another()
	if _, err := cl.MemberAddAsLearner(t.Context(), []string{other.Config.AdvertisePeer}); err != nil {
		t.Fatal(err)
	}
	other.Start(false, true)
	waitLearner(t, c, other)
	dir := t.TempDir()

	ob := etcd.NewObserver(reach(c, m), etcd.Options{ReadOnly: true, HostOf: func(a string) string {
		return map[string]string{m.Address.String(): m.Name, other.Address.String(): other.Name}[a]
	}}).Observe(t.Context())
	src, err := SourceOf(ob, reach(c, m), m.Name)
	if err != nil || src.Host != m.Name || len(src.Etcd.Endpoints) != 1 {
		t.Fatal(src, err)
	}
	if _, err := SourceOf(ob, reach(c, m), other.Name); !errors.Is(err, ErrNoVote) || !strings.Contains(err.Error(), "learner still; voters: h1") {
		t.Errorf("source of a learner: %v", err)
	}
	if _, err := SourceOf(ob, reach(c, m), "h9"); !errors.Is(err, ErrNoVote) {
		t.Errorf("source of a standby: %v", err)
	}
	_, err = Save(t.Context(), source(t, c, other), dir, nil)
	if !errors.Is(err, ErrNoVote) {
		t.Errorf("save from a learner: %v", err)
	}
	src.Etcd.Endpoints = []string{other.Config.AdvertiseClient}
	_, err = Save(t.Context(), src, dir, nil)
	if err == nil || !strings.Contains(err.Error(), "answers at "+other.Config.AdvertiseClient+", not "+src.Member) {
		t.Errorf("save through another member's address: %v", err)
	}
	src.Etcd.Endpoints = []string{"http://" + m.Address.String() + ":2399"}
	_, err = Save(t.Context(), src, dir, nil)
	if what, _ := etcd.Explain(err, src.Etcd.Endpoints[0]); !strings.Contains(what, "refused") {
		t.Errorf("save from a closed port: %q from %v", what, err)
	}
	if left := ls(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func waitLearner(t *testing.T, c *membertest.Cluster, m *membertest.Member) {
	t.Helper()
	cl := client(t, c, m)
	for until := time.Now().Add(membertest.Patience); ; {
		s, err := cl.Status(t.Context(), m.Config.AdvertiseClient)
		if err == nil && s.IsLearner {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("no learner: %v %v", s, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
