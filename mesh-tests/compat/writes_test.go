package compat

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/member/membertest"
	"suffrage/membership/etcd"
	"suffrage/observe"
)

// trace is all that a write leaves behind on one member.
type trace struct {
	revision int64
	hash     uint32 // of every key with its history, at that revision
	puts     uint64 // of keys, since the process began
	proposed uint64 // entries of the log
}

var putsLine = regexp.MustCompile(`(?m)^etcd_mvcc_put_total (\S+)$`)

func traceOf(t *testing.T, cl *clientv3.Client, m *membertest.Member) (out trace) {
	t.Helper()
	ctx := patient(t)
	s, err := cl.Status(ctx, m.Config.AdvertiseClient)
	if err != nil {
		t.Fatal(err)
	}
	out.revision, out.proposed = s.Header.Revision, s.RaftIndex
	h, err := cl.HashKV(ctx, m.Config.AdvertiseClient, 0)
	if err != nil {
		t.Fatal(err)
	}
	out.hash = h.Hash
	web := http.Client{Timeout: membertest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := web.Get(m.Config.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	puts := putsLine.FindSubmatch(page)
	if puts == nil {
		t.Fatalf("%s tells no number of puts", m.Name)
	}
	n, err := strconv.ParseFloat(string(puts[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	out.puts = uint64(n)
	return out
}

// settled waits until all members have applied what was written before.
func settled(t *testing.T, c *membertest.Cluster, cl *clientv3.Client) []trace {
	t.Helper()
	for ctx := patient(t); ; time.Sleep(50 * time.Millisecond) {
		var all []trace
		same := true
		for _, m := range c.Members {
			all = append(all, traceOf(t, cl, m))
			same = same && all[len(all)-1].revision == all[0].revision && all[len(all)-1].proposed == all[0].proposed
		}
		if same {
			return all
		}
		if ctx.Err() != nil {
			t.Fatalf("the members do not settle: %+v", all)
		}
	}
}

// unchanged compares what keys and revisions are, on every member.
func unchanged(t *testing.T, before, after []trace) {
	t.Helper()
	for i := range before {
		b, a := before[i], after[i]
		if a.revision != b.revision || a.hash != b.hash || a.puts != b.puts {
			t.Errorf("h%d was written to: %+v, before %+v", i+1, a, b)
		}
	}
}

// Observing puts nothing and proposes nothing. etcd proposes for itself now and
// then, so one quiet run of several is proof: what proposed would do so in each.
func testObserveWritesNothing(t *testing.T, c *membertest.Cluster) {
	cl := clientOf(t, c)
	for range 8 {
		before := settled(t, c, cl)
		if _, err := observe.Run(patient(t), observe.Options{Etcd: configOf(c), For: time.Second}); err != nil {
			t.Fatal(err)
		}
		after := settled(t, c, cl)
		unchanged(t, before, after)
		if after[0].proposed == before[0].proposed {
			return
		}
	}
	t.Error("every run added to etcd's log")
}

// A write check goes through the log of every voter, and leaves no key, no
// revision and no put: what membership/etcd's writeCheck claims.
func testCheckWritesNothing(t *testing.T, c *membertest.Cluster) {
	cl, ctx := clientOf(t, c), patient(t)
	o := etcd.NewObserver(configOf(c), etcd.Options{HostOf: c.HostOf})
	before := settled(t, c, cl)
	const rounds = 4
	for range rounds {
		ob := o.Observe(ctx)
		for _, m := range ob.Members {
			if !m.Responding {
				t.Errorf("%s does not pass the write check: %s", m.Host, m.Error)
			}
		}
	}
	after := settled(t, c, cl)
	unchanged(t, before, after)
	if grown := after[0].proposed - before[0].proposed; grown < 3*rounds {
		t.Errorf("the log grew by %d entries; %d write checks should be in it", grown, 3*rounds)
	}
	g, err := cl.Get(ctx, "/suffrage/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || g.Count != 0 {
		t.Errorf("keys under /suffrage/: %v, %v", g, err)
	}
}
