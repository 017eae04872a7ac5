package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership"
	"suffrage/membership/host"
)

// Server is the etcd server of this host, as far as the agent has to do with it.
type Server interface {
	// Order carries out one order.
	Order(ctx context.Context, o host.Order) host.Result
	// Facts tells what is; an error means that it is not known.
	Facts(ctx context.Context) (fitness.ServerFacts, error)
}

const (
	// orderTime bounds an order. A snapshot has its own, longer one.
	orderTime    = 2 * time.Minute
	snapshotTime = time.Hour
	// answerTime is how long whoever ordered may wait on one request; below the
	// time in which a reply must be written.
	answerTime = 45 * time.Second
)

// orders takes orders, one at a time. One that was begun goes on when whoever
// gave it goes away, and is joined by the same order given again.
//
// An order names the newest one that its giver knew to have been begun: one that
// lay in a frozen process or on a dead connection while others were carried out
// is late, and refused.
type orders struct {
	server   Server
	instance string
	log      *slog.Logger
	// after is called once an order has ended.
	after func(context.Context)

	mu      sync.Mutex
	ctx     context.Context // of Run; nil when it does not run
	begun   uint64
	job     *job
	running sync.WaitGroup
}

// job is an order under way, or the last one.
type job struct {
	order  host.Order
	done   chan struct{}
	result host.Result // set before done is closed
}

// open lets orders in until the context ends, and returns what waits for the
// last of them.
func (s *orders) open(ctx context.Context) (wait func()) {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.ctx = nil
		s.mu.Unlock()
		s.running.Wait()
	}
}

// last names the newest order that was begun.
func (s *orders) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name()
}

func (s *orders) name() string { return fmt.Sprintf("%s-%d", s.instance, s.begun) }

// give begins an order, or joins the same one.
func (s *orders) give(o host.Order, after, by string) (*job, host.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil, host.Refuse(host.NoServer, "the agent of this host does not run an etcd server: set agent.unit there")
	}
	if s.ctx == nil || s.ctx.Err() != nil {
		return nil, host.Refuse(host.OrderUnderWay, "the agent of this host is stopping: give it again")
	}
	if s.job != nil {
		select {
		case <-s.job.done:
		default:
			if reflect.DeepEqual(s.job.order, o) {
				return s.job, host.Result{}
			}
			return nil, host.Refuse(host.OrderUnderWay, "this host carries out another order (%s): give it again when that has ended", s.job.order)
		}
	}
	if after != s.name() {
		return nil, host.Refuse(host.LateOrder, "it was given after order %.80q, and %q was begun since: look, and decide again", after, s.name())
	}
	s.begun++
	j := &job{order: o, done: make(chan struct{})}
	s.job = j
	ctx := s.ctx
	s.running.Go(func() { s.carryOut(ctx, j, by) })
	return j, host.Result{}
}

func (s *orders) carryOut(ctx context.Context, j *job, by string) {
	limit := orderTime
	if j.order.Verb == membership.SaveSnapshot {
		limit = snapshotTime
	}
	work, cancel := context.WithTimeout(ctx, limit)
	began := time.Now()
	r := s.server.Order(work, j.order)
	cancel()
	r.Reason = clip(r.Reason)
	level := slog.LevelInfo
	if r.Outcome != host.Done {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "order", "verb", j.order.Verb, "term", j.order.Term, "op", j.order.Operation, "by", by,
		"outcome", r.Outcome, "code", r.Code, "reason", r.Reason, "ms", time.Since(began).Milliseconds())
	// The next report has to tell what it did.
	s.after(ctx)
	j.result = r
	close(j.done)
}

// orderState is the answer to GET /v1/order.
type orderState struct {
	// Last names the newest order that was begun; the next has to name it.
	Last string `json:"last"`
}

// serveLast answers GET /v1/order.
func (a *Agent) serveLast(w http.ResponseWriter, req *http.Request) {
	if _, err := identity.PeerName(*req.TLS, a.roster.Load()); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	a.write(w, orderState{a.orders.last()})
}

// serveOrder answers POST /v1/order?after=NAME with an order as its body.
func (a *Agent) serveOrder(w http.ResponseWriter, req *http.Request) {
	by, err := identity.PeerName(*req.TLS, a.roster.Load())
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, host.MaxOrder))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o, err := host.DecodeOrder(body)
	if err != nil {
		a.write(w, host.Refuse(host.BadOrder, "%s", clip(err.Error())))
		return
	}
	j, refused := a.orders.give(o, req.URL.Query().Get("after"), by)
	if j == nil {
		a.write(w, refused)
		return
	}
	patience := time.NewTimer(answerTime)
	defer patience.Stop()
	select {
	case <-j.done:
		a.write(w, j.result)
	case <-patience.C:
		a.write(w, host.Result{Outcome: host.UnderWay, Reason: "it goes on: give it again to wait for its end"})
	case <-req.Context().Done():
	}
}

func (a *Agent) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.log.Debug("an answer was not taken in whole", "err", err)
	}
}

// readServer makes the server's state a fact. One reader at a time, or an older
// look could be told after a newer one.
func (a *Agent) readServer(ctx context.Context, _ time.Duration) error {
	a.looking.Lock()
	defer a.looking.Unlock()
	f, err := a.o.Server.Facts(ctx)
	a.record.tell(func(facts *fitness.Facts) {
		facts.Server = &f
		if err != nil {
			facts.Server = nil // not known is never told as something
		}
	})
	return err
}

// afterOrder has the new state told at once.
func (a *Agent) afterOrder(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runTimeout)
	defer cancel()
	if err := a.readServer(ctx, 0); err != nil {
		a.log.Warn("the state of the etcd server after an order is not known", "err", err)
	}
}
