package observe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"suffrage/fitness"
	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/observe"
)

func TestMain(m *testing.M) {
	membertest.Main()
	goleak.VerifyTestMain(m)
}

func options(c *membertest.Cluster) observe.Options {
	cfg := etcd.DefaultConfig()
	cfg.Endpoints, cfg.CA, cfg.Cert, cfg.Key = c.Endpoints()[:1], c.CA, c.Cert, c.Key
	return observe.Options{Etcd: cfg, For: 2 * time.Second}
}

func client(t *testing.T, o observe.Options) *clientv3.Client {
	t.Helper()
	cl, err := o.Etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

// A whole cluster, found from one endpoint, while it is written to.
func TestRun(t *testing.T) {
	c := membertest.New(t, membertest.Options{TLS: true})
	o := options(c)
	cl := client(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
	defer cancel()
	var wg sync.WaitGroup
	writing, stop := context.WithCancel(ctx)
	for i := range 8 {
		wg.Go(func() {
			for n := 0; writing.Err() == nil; n++ {
				_, _ = cl.Put(writing, fmt.Sprintf("k%d", i), "v")
			}
		})
	}
	// On a busy machine two seconds may pass without one answer.
	var r observe.Report
	idle := func(m observe.Member) bool { return m.RoundTrip.Count == 0 || m.WALFsync.Count == 0 }
	for len(r.Members) == 0 || slices.ContainsFunc(r.Members, idle) {
		var err error
		if r, err = observe.Run(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	wg.Wait()
	if len(r.Members) != 3 || len(r.Refusals) != 0 || len(r.Troubles) != 0 || r.Error != "" {
		t.Errorf("a good cluster: %+v", r)
	}
	if r.ElectionTimeout != fitness.Duration(time.Second) || r.ElectionTimeoutFrom != "read" {
		t.Errorf("election timeout %v, %s; the members tell it", r.ElectionTimeout, r.ElectionTimeoutFrom)
	}
	if r.Downgrade == nil || *r.Downgrade != "" {
		t.Errorf("downgrade %v; 3.7 tells that none is open", r.Downgrade)
	}
	leaders := 0
	for i, m := range r.Members {
		if m.Leader {
			leaders++
		}
		if m.Name != c.Members[i].Name || m.Role != "voter" || m.List != "same" || m.Quota != 2<<30 || m.Lag == nil || !m.Responding {
			t.Errorf("%+v", m)
		}
		if m.RoundTrip.P50 == nil || m.RoundTrip.Count == 0 || (m.RoundTrip.Count >= 100) != (m.RoundTrip.P99 != nil) {
			t.Errorf("round trip %+v", m.RoundTrip)
		}
		for _, d := range []observe.Disk{m.WALFsync, m.BackendCommit} {
			if d.Says == observe.NoMetrics || d.Limit == 0 {
				t.Errorf("disk of %s: %+v", m.Name, d)
			}
		}
		if m.WALFsync.Count == 0 {
			t.Errorf("%s was written to, its fsyncs were not counted", m.Name)
		}
	}
	if leaders != 1 {
		t.Errorf("%d leaders", leaders)
	}
	testDocumentIsStable(t, r)
	testWritesNothing(t, o, cl)
	testLostMember(t, c, o)
}

// The names are what people's scripts read.
func testDocumentIsStable(t *testing.T, r observe.Report) {
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("version at for cluster_id members election_timeout election_timeout_from downgrade alarms leader_changes refusals troubles") {
		if _, ok := doc[key]; !ok {
			t.Errorf("no %q in the document", key)
		}
	}
	m := doc["members"].([]any)[0].(map[string]any)
	for _, key := range strings.Fields("id name role leader url responding version db_size db_in_use quota lag list round_trip metrics wal_fsync backend_commit") {
		if _, ok := m[key]; !ok {
			t.Errorf("no %q in a member", key)
		}
	}
}

// Neither the revision moves nor the log: etcd proposes for itself now and
// then, and a put that its client gave up on is still carried out, so one quiet
// run of several is proof.
func testWritesNothing(t *testing.T, o observe.Options, cl *clientv3.Client) {
	o.For = time.Second
	state := func() (revision int64, index uint64) {
		s, err := cl.Status(t.Context(), o.Etcd.Endpoints[0])
		if err != nil {
			t.Fatal(err)
		}
		return s.Header.Revision, s.RaftIndex
	}
	for range 8 {
		rev, index := state()
		if _, err := observe.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		rev2, index2 := state()
		if rev2 == rev && index2 == index {
			return
		}
	}
	t.Error("every run added to etcd's log")
}

// With one voter frozen the rest is reported, and the guard named.
func testLostMember(t *testing.T, c *membertest.Cluster, o observe.Options) {
	c.Members[2].Signal(syscall.SIGSTOP)
	defer c.Members[2].Signal(syscall.SIGCONT)
	for until := time.Now().Add(membertest.Patience); ; {
		r, err := observe.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		// While a frozen leader is replaced, others do not respond either.
		if len(r.Refusals) == 1 && r.Refusals[0].Code == membership.VoterNotResponding && r.Refusals[0].Subject == "h3" && r.Members[0].Responding {
			if len(r.Troubles) != 1 || r.Troubles[0].Next == "" {
				t.Errorf("troubles %v", r.Troubles)
			}
			return
		}
		if time.Now().After(until) {
			t.Fatalf("h3 is frozen: %+v", r.Refusals)
		}
	}
}

// A user that may only read is enough, and could not write if we tried.
func TestRunAsReader(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1, TLS: true})
	o := options(c)
	cl := client(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
	defer cancel()
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := cl.UserAdd(ctx, "root", "secret")
	do("user root", err)
	_, err = cl.UserGrantRole(ctx, "root", "root")
	do("role root", err)
	_, err = cl.UserAddWithOptions(ctx, "h1", "", &clientv3.UserAddOptions{NoPassword: true}) // the certificate's name
	do("user h1", err)
	_, err = cl.RoleAdd(ctx, "reader")
	do("role reader", err)
	_, err = cl.UserGrantRole(ctx, "h1", "reader") // a role without any permission
	do("grant", err)
	_, err = cl.AuthEnable(ctx)
	do("auth", err)
	r, err := observe.Run(ctx, o)
	do("observe", err)
	m := r.Members[0]
	if !m.Responding || m.List != "same" || m.RoundTrip.Lost != 0 || m.WALFsync.Says == observe.NoMetrics || len(r.Troubles) != 0 {
		t.Errorf("all this needs no permission: %+v, %v", m, r.Troubles)
	}
	if codes := codesOf(r); !slices.Equal(codes, []membership.Code{membership.BelowMinimum}) {
		t.Errorf("refusals %v; one voter is below the minimum", codes)
	}
}

func codesOf(r observe.Report) []membership.Code {
	var out []membership.Code
	for _, f := range r.Refusals {
		out = append(out, f.Code)
	}
	return out
}

// Metrics that are not exposed leave the rest of the report as it is, and say
// which setting exposes them.
func TestRunWithoutMetrics(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	o := options(c)
	o.For = time.Second
	o.Metrics = []string{"http://127.0.0.1:1/metrics"}
	o.ElectionTimeout = 3 * time.Second
	r, err := observe.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.ElectionTimeoutFrom != "given" || r.ElectionTimeout != fitness.Duration(3*time.Second) {
		t.Errorf("election timeout %v, %s", r.ElectionTimeout, r.ElectionTimeoutFrom)
	}
	if r.Members[0].WALFsync.Says != observe.NoMetrics || r.Members[0].RoundTrip.Count == 0 {
		t.Errorf("%+v", r.Members[0])
	}
	if len(r.Troubles) != 1 || !strings.Contains(r.Troubles[0].What, "127.0.0.1:1") || !strings.Contains(r.Troubles[0].Next, "--etcd-expose-metrics") {
		t.Errorf("troubles %v", r.Troubles)
	}
}

func TestRunUnreachable(t *testing.T) {
	cfg := etcd.DefaultConfig()
	cfg.Endpoints = []string{"http://127.0.0.1:1"}
	r, err := observe.Run(t.Context(), observe.Options{Etcd: cfg, For: time.Second})
	if !errors.Is(err, observe.ErrUnreachable) || len(r.Troubles) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := observe.Run(ctx, observe.Options{Etcd: cfg, For: time.Second}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestK3s(t *testing.T) {
	for _, test := range []struct {
		why   string
		files []string
		want  string
	}{
		{"no K3s", nil, "runs no K3s"},
		{"an agent", []string{"agent/x"}, "K3s agent"},
		{"SQLite", []string{"server/db/state.db"}, "SQLite"},
		{"an external datastore", []string{"server/token"}, "--datastore-endpoint"},
		{"embedded etcd", []string{"server/tls/etcd/server-ca.crt", "server/tls/etcd/client.crt", "server/tls/etcd/client.key"}, ""},
	} {
		dir := t.TempDir() + "/k3s"
		for _, f := range test.files {
			path := dir + "/" + f
			if err := errors.Join(os.MkdirAll(path[:strings.LastIndexByte(path, '/')], 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		c, err := observe.K3s(dir)
		switch {
		case test.want == "" && (err != nil || !strings.HasSuffix(c.Key, "client.key") || c.Validate() != nil):
			t.Errorf("%s: %+v, %v", test.why, c, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.why, err, test.want)
		}
	}
}
