package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/host"
)

// slowServer is a host's server whose snapshots take as long as the test wants;
// the rest is real, with a unit that never runs anything.
type slowServer struct {
	*host.Server
	data  string
	begun chan host.Order
	end   chan bool
}

type idleUnit struct {
	data string
	mu   sync.Mutex
	err  error
}

func (u *idleUnit) Start(context.Context) error { return host.Fenced(u.data) }
func (u *idleUnit) Stop(context.Context) error  { return nil }
func (u *idleUnit) State(context.Context) (host.UnitState, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return host.UnitState{}, u.err
}

func newSlowServer(t *testing.T) (*slowServer, *idleUnit) {
	t.Helper()
	s := &slowServer{begun: make(chan host.Order, 9), end: make(chan bool, 9)}
	data := t.TempDir()
	s.data = data
	u := &idleUnit{data: data}
	var err error
	s.Server, err = host.New(host.Options{Host: "h2", Data: data, Datastore: filepath.Join(data, "etcd"), Snapshots: data, Unit: u,
		Save: func(ctx context.Context) (fitness.SnapshotFacts, error) {
			s.begun <- host.Order{}
			select {
			case <-s.end:
				return fitness.SnapshotFacts{}, errors.New("the disk is full")
			case <-ctx.Done():
				return fitness.SnapshotFacts{}, ctx.Err()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s, u
}

func orderOf(v membership.Verb, term uint64) host.Order {
	return host.Order{Verb: v, Term: term, Operation: "op", Member: "aa"}
}

func TestOrders(t *testing.T) {
	f := newTestFleet(t, "h1", "h2", "h3")
	s, u := newSlowServer(t)
	o := f.options("h2")
	o.Server = s
	f.start(o)
	f.start(f.options("h3"))
	c := f.client("h1")
	facts := func() *fitness.ServerFacts {
		r, err := c.Pull(t.Context(), "h2", 0)
		if err != nil {
			t.Fatal(err)
		}
		return r.Facts.Server
	}
	if err := c.Order(t.Context(), "h2", orderOf(membership.Fence, 5)); err != nil {
		t.Fatal(err)
	}
	if got := facts(); got == nil || !got.Fenced || got.Term != 5 || got.Role != host.Standby {
		t.Errorf("the report after the answer says %+v", got)
	}
	err := c.Order(t.Context(), "h2", orderOf(membership.Unfence, 4))
	if e, ok := errors.AsType[*host.LowerTermError](err); !ok || e.Seen != 5 || e.Got != 4 || !strings.Contains(err.Error(), "stale-term") {
		t.Errorf("a lower term: %v", err)
	}
	err = c.Order(t.Context(), "h3", orderOf(membership.Fence, 5))
	if e, ok := errors.AsType[*host.OrderError](err); !ok || e.Result.Code != host.NoServer || e.Result.Outcome != host.Refused {
		t.Errorf("an agent that runs no server: %v", err)
	}
	for why, tt := range map[string]struct {
		host string
		o    host.Order
	}{
		"no such host": {"h9", orderOf(membership.Fence, 5)},
		"no order":     {"h2", orderOf(membership.Promote, 5)},
		"nobody there": {"h1", orderOf(membership.Fence, 5)},
	} {
		if err := c.Order(t.Context(), tt.host, tt.o); err == nil || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "order") {
			t.Errorf("%s: %v; it was not given, and that is known", why, err)
		}
	}
	if f.log.count("msg=order") != 2 {
		t.Error("want one line in the log for each order")
	}
	u.mu.Lock()
	u.err = errors.New("the bus is gone")
	u.mu.Unlock()
	eventually(t, "what is not known is not told", func() bool { return facts() == nil })
}

func TestTwoOrdersAtOnce(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	s, _ := newSlowServer(t)
	o := f.options("h2")
	o.Server = s
	a := f.start(o)
	c := f.client("h1")
	save := orderOf(membership.SaveSnapshot, 1)

	// Whoever gave it does not wait for its end.
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- c.Order(ctx, "h2", save) }()
	<-s.begun
	cancel()
	if err := <-first; !errors.Is(err, ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	err := c.Order(t.Context(), "h2", orderOf(membership.Fence, 1))
	if e, ok := errors.AsType[*host.OrderError](err); !ok || e.Result.Code != host.OrderUnderWay {
		t.Errorf("another order meanwhile: %v", err)
	}
	// The same again waits for the one that was begun.
	again := make(chan error)
	go func() { again <- c.Order(t.Context(), "h2", save) }()
	select {
	case err := <-again:
		t.Fatalf("it did not wait: %v", err)
	case <-s.begun:
		t.Fatal("it was begun twice")
	case <-time.After(100 * time.Millisecond):
	}
	s.end <- true
	err = <-again
	if e, ok := errors.AsType[*host.OrderError](err); !ok || e.Result.Outcome != host.Failed || e.Result.Code != membership.SnapshotFailed {
		t.Errorf("%v", err)
	}
	// Stopping the agent ends what is under way.
	go c.Order(t.Context(), "h2", save)
	<-s.begun
	if err := a.stop(); err != nil {
		t.Error(err)
	}
}

// TestLateOrder: an order that lay somewhere while another was carried out does
// nothing when it arrives.
func TestLateOrder(t *testing.T) {
	f := newTestFleet(t, "h1", "h2")
	s, _ := newSlowServer(t)
	o := f.options("h2")
	o.Server = s
	a := f.start(o)
	c := f.client("h1")
	post := func(after, body string) (int, host.Result) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+target(f.hosts["h2"])+"/v1/order?after="+after, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var r host.Result
		_ = json.Unmarshal(b, &r)
		return resp.StatusCode, r
	}
	text := func(o host.Order) string { b, _ := json.Marshal(o); return string(b) }
	before := a.orders.last()
	if err := c.Order(t.Context(), "h2", orderOf(membership.Fence, 1)); err != nil {
		t.Fatal(err)
	}
	for why, tt := range map[string]struct {
		after, body string
		status      int
		want        membership.Code
	}{
		"given before the fence":    {before, text(orderOf(membership.Unfence, 1)), 200, host.LateOrder},
		"given to an earlier agent": {"OTHER-1", text(orderOf(membership.Unfence, 1)), 200, host.LateOrder},
		"without its place":         {"", text(orderOf(membership.Unfence, 1)), 200, host.LateOrder},
		"a shell":                   {a.orders.last(), `{"verb":"exec","term":1,"operation":"op"}`, 200, host.BadOrder},
		"another key":               {a.orders.last(), `{"verb":"unfence","term":1,"operation":"op","force":true}`, 200, host.BadOrder},
		"endless":                   {a.orders.last(), strings.Repeat(" ", host.MaxOrder+1), 400, ""},
	} {
		if status, r := post(tt.after, tt.body); status != tt.status || r.Code != tt.want {
			t.Errorf("%s: %d %+v, want %d %s", why, status, r, tt.status, tt.want)
		}
	}
	if host.Fenced(s.data) == nil {
		t.Error("the fence is gone")
	}
	// Taken out of the roster, a host gives no orders over a connection that stands.
	f.write(f.roster, "h2")
	eventually(t, "the roster is taken up", func() bool { return a.roster.Load().Len() == 1 })
	if err := c.Order(t.Context(), "h2", orderOf(membership.Unfence, 1)); err == nil || !strings.Contains(err.Error(), "it answers 403") || errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestAnswersToOrdersThatMeanNothing(t *testing.T) {
	for why, tt := range map[string]struct {
		answer  string
		unknown bool
	}{
		"cut off":              {`{"outcome":"do`, true},
		"no outcome":           {`{}`, true},
		"one of another build": {`{"outcome":"later"}`, true},
		"under way":            {`{"outcome":"under-way"}`, true},
		"refused":              {`{"outcome":"refused","code":"late-order"}`, false},
	} {
		f := newTestFleet(t, "h1", "h2")
		hostile(t, f, "h2", []string{"h2"}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				io.WriteString(w, `{"last":"A-0"}`)
				return
			}
			io.WriteString(w, tt.answer)
		})
		err := f.client("h1").Order(t.Context(), "h2", orderOf(membership.Fence, 1))
		if err == nil || errors.Is(err, ErrUnknown) != tt.unknown {
			t.Errorf("%s: %v, want unknown %v", why, err, tt.unknown)
		}
	}
}
