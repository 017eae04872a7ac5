package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership/host"
	"suffrage/probes"
)

// Options are what an Agent is made of.
type Options struct {
	Config Config
	// Host is this host's name in the roster; Key is its key.
	Host string
	Key  *identity.Key
	// Roster is the path of the roster file. A changed file is taken up within
	// seconds; a bad one is logged, and the one before stays.
	Roster string
	// Software is the version that reports carry.
	Software string
	Log      *slog.Logger
	// Registry gets the agent's metrics, and is what /metrics serves.
	Registry *prometheus.Registry
	// Root is where procfs and sysfs are below; "/" when empty.
	Root string
	// Server is the host's etcd server where the agent runs one; nil where it does
	// not, and orders are refused.
	Server Server
	// Standing tells what this host has of any cluster, whether the agent runs the
	// server or not. Nil: whoever asks gets an error.
	Standing func() (host.Standing, error)
	// Lacks are what keeps this host from being made a voter that only the host
	// itself can see, nothing where it is prepared; the context bounds it. Nil where
	// nobody looks.
	Lacks func(context.Context) []string
	// K3s is the version of K3s that this host's server would run. Nil where it is none
	// of K3s's.
	K3s func(context.Context) (string, error)
	// Snapshots is when this host saves its next scheduled snapshot, and whether it
	// does now; zero where it has no schedule. Nil where nothing is scheduled.
	Snapshots func() (next time.Time, saving bool)
	// Endpoint tells where this host leads its clients of etcd. Nil where it does not.
	Endpoint func() *fitness.EndpointFacts
}

// Agent is the daemon of one host.
type Agent struct {
	o        Options
	log      *slog.Logger
	instance string
	record   *record
	schedule *schedule
	roster   atomic.Pointer[identity.Roster]
	file     fileState // of the roster, as last looked at; its worker's own
	fileErr  error     // why it was not taken up
	paths    seenPaths // its worker's own

	wal       *probes.WAL
	commit    *probes.Commit
	stability *probes.Stability
	member    *member
	orders    *orders
	looking   sync.Mutex // held while the server's state is read and told

	// What follows belongs to the schedule's goroutine.
	disks     [2]*worker // wal_fsync, commit
	steady    []*worker  // every round
	now       []*worker  // facts, every ten periods
	scrape    *worker
	look      *worker // at the roster
	serving   *worker // at the etcd server; nil without one
	met       *identity.Roster
	peers     map[string]*peer
	nextFacts time.Time
	nextPage  time.Time
	nextLook  time.Time

	api, pages net.Listener
}

const (
	factsEvery  = 30 * time.Second // at most
	factsLeast  = time.Second
	rosterEvery = 3 * time.Second
)

// New reads the roster, makes the directory of the disk probes, and takes both
// addresses. Run must be called then.
func New(o Options) (*Agent, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, fmt.Errorf("agent: configuration: %w", err)
	}
	if o.Config.Dir == "" {
		return nil, errors.New("agent: configuration: dir: no directory for the disk probes")
	}
	if o.Root == "" {
		o.Root = "/"
	}
	a := &Agent{
		o: o, log: o.Log, instance: rand.Text(),
		record:   newRecord(bootClock()),
		schedule: &schedule{slot: o.Config.Period.Std() / slots},
		peers:    map[string]*peer{},
		paths:    seenPaths{},
	}
	if err := a.readRoster(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Config.Dir, 0o700); err != nil {
		// The disk may come back; until then its probes say what is wrong.
		a.log.Error("cannot make the directory of the disk probes", "err", err)
	}
	a.equip()
	a.orders = &orders{server: o.Server, instance: a.instance, log: o.Log, after: a.afterOrder}
	newMetrics(o.Registry, a.record)
	if err := a.listen(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Agent) listen() (err error) {
	at := a.o.Config.Listen
	if at == "" {
		at = a.self().AddrPort().String()
	}
	if a.api, err = net.Listen("tcp", at); err != nil {
		return fmt.Errorf("agent: listen on %s: %w: is another agent running, and is the mesh up (agent.listen, and this host's entry in %s)?", at, err, a.o.Roster)
	}
	if a.pages, err = net.Listen("tcp", a.o.Config.Metrics); err != nil {
		a.api.Close()
		return fmt.Errorf("agent: listen on %s: %w: is another agent running (agent.metrics)?", a.o.Config.Metrics, err)
	}
	return nil
}

// Run measures and serves until the context ends or serving fails. A disk run
// that hangs is left behind after two seconds.
func (a *Agent) Run(ctx context.Context) error {
	a.log.Info("agent started", "listen", a.api.Addr().String(), "metrics", a.pages.Addr().String(), "period", a.o.Config.Period.String(), "hosts", a.roster.Load().Len())
	a.schedule.begin = time.Now()
	group, ctx := errgroup.WithContext(ctx)
	workers := a.work(ctx)
	ordersEnd := a.orders.open(ctx)
	group.Go(func() error { return a.serveAPI(ctx) })
	group.Go(func() error { return a.servePages(ctx) })
	group.Go(func() error {
		a.schedule.run(ctx, func(n int64, late time.Duration) { a.tick(ctx, n, late) })
		for _, p := range a.peers {
			p.leave()
		}
		return nil
	})
	err := group.Wait()
	ordersEnd()
	a.member.client.CloseIdleConnections()
	select {
	case <-workers:
		err = errors.Join(err, a.wal.Close(), a.commit.Close())
	case <-time.After(2 * time.Second):
		err = errors.Join(err, errors.New("agent: a probe still hangs at the end: see the kernel's log for the disk or daemon that does not answer"))
	}
	a.log.Info("agent stopped")
	return err
}

// work starts every worker, and closes the channel when all have ended.
func (a *Agent) work(ctx context.Context) <-chan struct{} {
	var wg sync.WaitGroup
	for _, w := range a.workers() {
		wg.Go(func() {
			w.loop(ctx, func(took time.Duration, err error) {
				if a.record.ran(w.probe, took, err) {
					a.logProbe(w.probe.Name, err)
				}
			})
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	return done
}

func (a *Agent) workers() []*worker {
	out := append(append(append([]*worker{a.scrape, a.look}, a.disks[:]...), a.steady...), a.now...)
	if a.serving != nil {
		out = append(out, a.serving)
	}
	return out
}

func (a *Agent) logProbe(name string, err error) {
	if err != nil {
		a.log.Warn("probe fails", "probe", name, "err", err)
		return
	}
	a.log.Info("probe works again", "probe", name)
}

// tick is one slot of a round.
func (a *Agent) tick(ctx context.Context, n int64, late time.Duration) {
	a.record.tick(late)
	switch n % slots {
	case 0:
		a.meet(ctx)
		for _, p := range a.peers {
			p.pinger.Send(late)
		}
	case 1, 2:
		a.ask(late, a.disks[n%slots-1])
	case 3:
		a.ask(late, a.steady...)
		if a.serving != nil {
			a.ask(late, a.serving)
		}
		now := time.Now()
		if !now.Before(a.nextFacts) {
			a.nextFacts = now.Add(max(min(factsEvery, 10*a.o.Config.Period.Std()), factsLeast))
			a.ask(late, a.now...)
		}
		if !now.Before(a.nextPage) {
			a.nextPage = now.Add(max(fitness.BoundEvery*a.o.Config.Period.Std(), scrapeLeast))
			a.ask(late, a.scrape)
		}
		if !now.Before(a.nextLook) {
			a.nextLook = now.Add(min(rosterEvery, 10*a.o.Config.Period.Std()))
			a.ask(late, a.look)
		}
	}
}

func (a *Agent) ask(late time.Duration, workers ...*worker) {
	for _, w := range workers {
		if hung, sofar := w.tick(late); hung {
			if text := hangs(sofar); a.record.hangs(w.probe, sofar, text) {
				a.logProbe(w.probe.Name, errors.New(text))
			}
		}
	}
}

// self is this host's entry in the roster.
func (a *Agent) self() identity.RosterHost {
	h, _ := a.roster.Load().ByName(a.o.Host)
	return h
}

func addrPort(h identity.RosterHost, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(h.Address, port)
}

// peerAddresses are the mesh addresses of the other hosts.
func (a *Agent) peerAddresses() map[string]netip.Addr {
	out := map[string]netip.Addr{}
	for _, h := range a.others() {
		out[h.Name] = h.Address
	}
	return out
}

// others are the hosts that are pinged.
func (a *Agent) others() []identity.RosterHost {
	var out []identity.RosterHost
	for _, h := range a.roster.Load().Hosts() {
		if h.Name != a.o.Host && len(out) < MaxPeers {
			out = append(out, h)
		}
	}
	return out
}

// Report is what the agent tells: samples with a sequence number above after.
func (a *Agent) Report(after uint64) fitness.Report {
	r := a.record.report(after)
	r.Host, r.Instance, r.Software, r.Period = a.o.Host, a.instance, a.o.Software, a.o.Config.Period
	r.Facts.Zone = a.o.Config.Zone
	if a.o.Snapshots != nil {
		if next, saving := a.o.Snapshots(); !next.IsZero() {
			// The schedule goes by the wall clock, a report by a clock that is never set.
			r.Facts.ScheduledSnapshot = &fitness.ScheduledSnapshot{Next: r.Now + time.Until(next).Microseconds(), Running: saving}
		}
	}
	if a.o.Endpoint != nil {
		r.Facts.Endpoint = a.o.Endpoint()
	}
	return r
}

// metricsClient reads the member's page on this host: no proxy, no redirects.
func metricsClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{}).DialContext,
			MaxIdleConns:           1,
			IdleConnTimeout:        2 * time.Minute,
			MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
