package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"suffrage/fitness"
	"suffrage/member/membertest"
	"suffrage/membership/etcd"
	"suffrage/mesh-tests/history"
)

// fleet is a cluster and an endpoint in front of it.
type fleet struct {
	*membertest.Cluster
	t      testing.TB
	o      Options
	end    func() // the endpoint's
	e      *Endpoint
	log    *said
	client *clientv3.Client
	gone   int // the first so many members are no more
}

// alive are the members that were not swapped out.
func (f *fleet) alive() []*membertest.Member { return f.Members[f.gone:] }

// said is a log that tests look into.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// options lead to a cluster from an address that is none of its members'.
func options(t testing.TB, c *membertest.Cluster) (Options, *said) {
	at := c.Members[0].Address.As4()
	at[3] = 100
	log := &said{}
	o := Options{
		Config:  Config{Listen: netip.AddrPortFrom(netip.AddrFrom4(at), 2379).String()},
		Address: netip.AddrFrom4(at),
		Etcd:    etcd.DefaultConfig(),
		Log:     slog.New(slog.NewTextHandler(log, nil)),
	}
	o.Etcd.Endpoints, o.Etcd.CA, o.Etcd.Cert, o.Etcd.Key = c.Endpoints(), c.CA, c.Cert, c.Key
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the endpoint's log:\n%s", log.text())
		}
	})
	return o, log
}

func newFleet(t *testing.T, change func(*Options, *membertest.Cluster)) *fleet {
	t.Helper()
	f := &fleet{Cluster: membertest.New(t, membertest.Options{}), t: t}
	f.o, f.log = options(t, f.Cluster)
	if change != nil {
		change(&f.o, f.Cluster)
	}
	f.start()
	f.client = f.dial()
	return f
}

// start starts an endpoint, also after end.
func (f *fleet) start() {
	f.t.Helper()
	var err error
	if f.o.Metrics, err = NewMetrics(prometheus.NewRegistry()); err != nil {
		f.t.Fatal(err)
	}
	if f.e, err = New(f.o); err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.e.Run(ctx) }()
	f.end = sync.OnceFunc(func() {
		stop()
		select {
		case err := <-done:
			if err != nil {
				f.t.Error(err)
			}
		case <-time.After(membertest.Patience):
			f.t.Error("the endpoint does not end")
		}
	})
	f.t.Cleanup(f.end)
	f.until("it listens", func() bool { return testutil.ToFloat64(f.o.Metrics.listening) == 1 })
}

// dial is a client as an API server has one.
func (f *fleet) dial() *clientv3.Client {
	f.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + f.o.Config.Listen}, DialTimeout: 20 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

func (f *fleet) until(what string, so func() bool) {
	f.t.Helper()
	for end := time.Now().Add(membertest.Patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("waited in vain until %s; %+v", what, f.e.Facts())
		}
	}
}

// write begins to write and to watch; the function that it gives ends both, and
// judges: no call failed, none was lost, and the watch saw every write.
func (f *fleet) write() (judge func()) {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.t.Context())
	w := &writes{client: f.client, ended: make(chan struct{})}
	go w.run(ctx)
	watched := f.client.Watch(f.t.Context(), "w/", clientv3.WithPrefix(), clientv3.WithRev(1))
	h := history.Clients{Client: f.client, Prefix: "h/"}
	histories := make(chan func(), 1)
	go func() {
		got, seen := h.Run(ctx)
		histories <- func() { history.Judge(f.t, got, seen, "") }
	}()
	return func() {
		f.t.Helper()
		stop()
		<-w.ended
		(<-histories)()
		f.t.Logf("%d writes, longest %v; repeated %v", w.done, w.slowest, testutil.ToFloat64(f.o.Metrics.repeated))
		if len(w.failed) > 0 || w.done == 0 {
			f.t.Errorf("%d writes, failed: %v", w.done, w.failed)
		}
		w.watched(f.t, watched)
	}
}

// writes are puts, each of a key of its own and tried once, as an API server does.
type writes struct {
	client  *clientv3.Client
	ended   chan struct{}
	done    int
	failed  []error
	slowest time.Duration
}

func (w *writes) run(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		began := time.Now()
		_, err := w.client.Txn(call).If(clientv3.Compare(clientv3.ModRevision(w.key(w.done)), "=", 0)).Then(clientv3.OpPut(w.key(w.done), "x")).Commit()
		cancel()
		w.slowest = max(w.slowest, time.Since(began))
		if err != nil {
			w.failed = append(w.failed, err)
			if len(w.failed) > 10 {
				return
			}
			continue
		}
		w.done++
		time.Sleep(2 * time.Millisecond)
	}
}

func (w *writes) key(n int) string { return fmt.Sprintf("w/%06d", n) }

func (w *writes) watched(t testing.TB, events clientv3.WatchChan) {
	t.Helper()
	seen := 0
	for end := time.After(membertest.Patience); seen < w.done; {
		select {
		case r, ok := <-events:
			if !ok || r.Err() != nil {
				t.Fatalf("the watch ended after %d of %d writes: %v", seen, w.done, r.Err())
			}
			for _, e := range r.Events {
				if string(e.Kv.Key) != w.key(seen) {
					t.Fatalf("the watch saw %s, want %s", e.Kv.Key, w.key(seen))
				}
				seen++
			}
		case <-end:
			t.Fatalf("the watch saw %d of %d writes", seen, w.done)
		}
	}
}

// id is a member's, as the cluster lists it.
func (f *fleet) id(name string) string {
	f.t.Helper()
	c := f.direct()
	defer c.Close()
	for end := time.Now().Add(membertest.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		list, err := c.MemberList(ctx)
		cancel()
		if err != nil {
			continue
		}
		for _, m := range list.Members {
			if m.Name == name {
				return etcd.ID(m.ID)
			}
		}
	}
	f.t.Fatal("no member " + name)
	return ""
}

// direct is a client that goes to the members themselves.
func (f *fleet) direct() *clientv3.Client {
	f.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: f.Endpoints()[f.gone:], Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// moveLeader has the leader hand over to a member, unless that one leads.
func (f *fleet) moveLeader(c *clientv3.Client, to *membertest.Member) {
	f.t.Helper()
	s, err := c.Status(f.t.Context(), f.Endpoints()[f.gone])
	if err != nil {
		f.t.Fatal(err)
	}
	id := f.id(to.Name)
	if etcd.ID(s.Leader) == id {
		return
	}
	at, err := clientv3.New(clientv3.Config{Endpoints: []string{f.named(etcd.ID(s.Leader)).Config.AdvertiseClient}, Logger: zap.NewNop()})
	if err != nil {
		f.t.Fatal(err)
	}
	defer at.Close()
	number, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := at.MoveLeader(f.t.Context(), number); err != nil {
		f.t.Fatal(err)
	}
}

// named is the member with an ID.
func (f *fleet) named(id string) *membertest.Member {
	f.t.Helper()
	for _, m := range f.alive() {
		if f.id(m.Name) == id {
			return m
		}
	}
	f.t.Fatal("no member of the test has the ID " + id)
	return nil
}

// leads waits until the facts are so.
func (f *fleet) leads(what string, so func(*fitness.EndpointFacts) bool) *fitness.EndpointFacts {
	f.t.Helper()
	f.until(what, func() bool { return so(f.e.Facts()) })
	return f.e.Facts()
}

func anywhere(x *fitness.EndpointFacts) bool { return x.Reads != "" && x.Error == "" }

func notOn(id string) func(*fitness.EndpointFacts) bool {
	return func(x *fitness.EndpointFacts) bool { return anywhere(x) && !slices.Contains(x.On, id) }
}

var errNone = errors.New("none")

func contains(err error, text string) bool {
	if err == nil {
		err = errNone
	}
	return strings.Contains(err.Error(), text)
}
