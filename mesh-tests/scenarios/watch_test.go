package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/record"
)

const (
	// look is how often the member list is read, and lookLimit how long that may take.
	look      = 100 * time.Millisecond
	lookLimit = 2 * time.Second
	// glance is how often the controllers are asked for their decision: twice a round.
	glance = 250 * time.Millisecond
	// maxMetrics bounds how many times metrics are read in a run, for memory's sake.
	maxMetrics = 12
)

// watcher sees what a fleet is and does while its clients write.
type watcher struct {
	f     *fleet
	began time.Time
	seen  sync.WaitGroup
	end   context.CancelFunc

	// Each is written by one goroutine, and read once all have ended.
	history   history.History
	writes    history.Writes
	members   []record.Members
	decisions []record.Decision

	mu      sync.Mutex
	times   int // that metrics were read
	metrics []record.Page
}

// watch begins, with these clients.
func (f *fleet) watch(c *history.Clients) *watcher {
	ctx, end := context.WithCancel(context.Background())
	w := &watcher{f: f, began: time.Now(), end: end}
	w.seen.Go(func() { w.history, w.writes = c.Run(ctx) })
	w.seen.Go(func() { w.watchMembers(ctx) })
	w.seen.Go(func() { w.watchDecisions(ctx) })
	return w
}

// ended ends the watch and gives what was seen.
func (w *watcher) ended() *record.Recording {
	w.mu.Lock()
	w.times = maxMetrics // nothing is begun beside Wait
	w.mu.Unlock()
	w.end()
	w.seen.Wait()
	w.readMetrics()
	return &record.Recording{History: w.history, Writes: w.writes, Members: w.members, Decisions: w.decisions, Metrics: w.metrics}
}

// watchMembers keeps the member lists that a quorum tells.
func (w *watcher) watchMembers(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(look) {
		at := time.Since(w.began)
		call, cancel := context.WithTimeout(ctx, lookLimit)
		list, err := w.f.Client.MemberList(call)
		cancel()
		if err != nil {
			continue // without a quorum nobody tells
		}
		m := record.Members{At: at, Cluster: fmt.Sprintf("%x", list.Header.ClusterId)}
		for _, one := range list.Members {
			name := one.Name
			if name == "" {
				name = strings.Join(one.PeerURLs, ",")
			}
			if one.IsLearner {
				m.Learners = append(m.Learners, name)
			} else {
				m.Voters = append(m.Voters, name)
			}
		}
		slices.Sort(m.Voters)
		slices.Sort(m.Learners)
		w.members = record.KeepMembers(w.members, m)
	}
}

// watchDecisions keeps what the controller that leads decided.
func (w *watcher) watchDecisions(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(glance) {
		at := time.Since(w.began)
		call, cancel := context.WithTimeout(ctx, lookLimit)
		d, err := w.f.Decision(call)
		cancel()
		if err == nil {
			w.decisions = record.KeepDecision(w.decisions, at, d)
		}
	}
}

// fault has metrics read beside what the scenario does next.
func (w *watcher) fault() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.times++; w.times < maxMetrics { // one is left for the end
		w.seen.Go(w.readMetrics)
	}
}

// readMetrics keeps what the services tell Prometheus that answer.
func (w *watcher) readMetrics() {
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	at := time.Since(w.began)
	pages := w.f.Services(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range pages {
		w.metrics = append(w.metrics, record.Page{At: at, Host: p.Host, Service: p.Service, Text: p.Text})
	}
}
