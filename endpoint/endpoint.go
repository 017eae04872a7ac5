package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"suffrage/fitness"
	"suffrage/membership/etcd"
)

const (
	// Patience is how long a request may be sent again, and how long a voter that
	// was well is still believed in while no other is: two of K3s's election timeouts.
	Patience = 10 * time.Second
	// Grace is how long requests that are under way may go on at a voter that is
	// left. etcd itself gives one up after 5 s + 2·E.
	Grace = 10 * time.Second

	lookEvery    = time.Second
	leastPause   = 100 * time.Millisecond
	betweenTries = 20 * time.Millisecond
	settled      = 60 // looks

	// A kube-apiserver may keep a connection for every kind of object.
	maxConnections = 4096
	maxStreams     = 4096 // of one connection, at a time
	// etcd refuses what is above 1.5 MiB, and answers with up to 2 GiB.
	maxRequest = 2 << 20
	maxAnswer  = 1<<31 - 1
	maxHeaders = 64 << 10
	maxText    = 500
)

// Options are what an Endpoint is made of.
type Options struct {
	Config Config
	// Address is this host's in the mesh, by which its own voter is known.
	Address netip.Addr
	// Etcd is how voters are reached; its endpoints are where they are looked for
	// as long as nobody has listed them.
	Etcd etcd.Config
	TLS  TLS
	// Socket listens already, as one that systemd holds across restarts. Nil: the
	// endpoint listens itself.
	Socket  net.Listener
	Metrics *Metrics
	Log     *slog.Logger
}

// Endpoint leads clients on this host to voters.
type Endpoint struct {
	o       Options
	route   atomic.Pointer[route]
	kicked  chan struct{} // a look is wanted now
	clients atomic.Int64
	trouble atomic.Pointer[string] // why it does not listen

	mu         sync.Mutex
	old        []*voter // left, and perhaps not gone yet
	stranger   string   // why a client was not let in last, as logged
	strangerAt time.Time
}

// New checks the options. Run must be called then.
func New(o Options) (*Endpoint, error) {
	if err := errors.Join(o.Config.Validate(), o.Etcd.Validate()); err != nil {
		return nil, fmt.Errorf("endpoint: configuration: %w", err)
	}
	e := &Endpoint{o: o, kicked: make(chan struct{}, 1)}
	e.route.Store(&route{next: make(chan struct{})})
	return e, nil
}

// Run listens and leads until the context ends. An address that something else
// has is tried again, and said: the rest of the agent does not depend on it.
func (e *Endpoint) Run(ctx context.Context) error {
	var all sync.WaitGroup
	looking, stop := context.WithCancel(context.WithoutCancel(ctx))
	all.Go(func() { (&guide{Endpoint: e}).run(looking) })
	defer func() {
		stop()
		all.Wait()
		e.cutAll()
	}()
	l, err := e.o.Socket, error(nil)
	for {
		if l == nil {
			l, err = net.Listen("tcp", e.o.Config.Listen)
		}
		if err == nil {
			e.listens(nil)
			err = e.serve(ctx, l)
			l = nil
		}
		if ctx.Err() != nil {
			return nil
		}
		e.listens(fmt.Errorf("endpoint: listen on %s: %w: does a member, or K3s's own etcd, listen there (endpoint.listen)?", e.o.Config.Listen, err))
		if !pause(ctx, 5*time.Second) {
			return nil
		}
	}
}

// listens notes whether it does.
func (e *Endpoint) listens(err error) {
	text := ""
	if err != nil {
		text = clip(err.Error())
	}
	was := e.trouble.Swap(&text)
	switch {
	case err == nil:
		e.o.Metrics.listening.Set(1)
		e.o.Log.Info("datastore endpoint listens", "listen", e.o.Config.Listen)
	case was == nil || *was != text:
		e.o.Metrics.listening.Set(0)
		e.o.Log.Error("datastore endpoint does not listen", "err", err)
	}
}

// serve serves until the context ends: then watches end at once, and the rest
// within Grace.
func (e *Endpoint) serve(ctx context.Context, l net.Listener) error {
	s := grpc.NewServer(
		grpc.UnknownServiceHandler(e.lead), grpc.ForceServerCodecV2(frames{}), grpc.Creds(e.o.TLS.inward(e.refused)),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxAnswer),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(10*time.Second), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))
	done := make(chan error, 1)
	go func() { done <- s.Serve(&bounded{Listener: l, e: e}) }()
	select {
	case err := <-done:
		s.Stop()
		return err
	case <-ctx.Done():
	}
	// Clients are told to go, and take nothing up here again.
	ended := make(chan struct{})
	go func() { s.GracefulStop(); close(ended) }()
	for _, v := range e.leadsTo() {
		v.leave()
	}
	select {
	case <-ended:
	case <-time.After(Grace):
		s.Stop()
		<-ended
	}
	<-done
	return nil
}

// refused logs why a client was not let in: what is new, and at most one a second.
func (e *Endpoint) refused(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := clip(err.Error())
	if text == e.stranger || time.Since(e.strangerAt) < time.Second {
		return
	}
	e.stranger, e.strangerAt = text, time.Now()
	e.o.Log.Warn("client of the datastore endpoint refused", "err", text)
}

// bounded closes connections above the most that there may be.
type bounded struct {
	net.Listener
	e *Endpoint
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.e.clients.Add(1) <= maxConnections {
			b.e.o.Metrics.connections.Inc()
			return &counted{Conn: c, gone: sync.OnceFunc(func() { b.e.clients.Add(-1); b.e.o.Metrics.connections.Dec() })}, nil
		}
		b.e.clients.Add(-1)
		b.e.o.Metrics.refused.Inc()
		c.Close()
	}
}

type counted struct {
	net.Conn
	gone func()
}

func (c *counted) Close() error {
	defer c.gone()
	return c.Conn.Close()
}

// kick asks for a look now.
func (e *Endpoint) kick() {
	select {
	case e.kicked <- struct{}{}:
	default:
	}
}

// remember keeps a voter that is being left, until it is gone.
func (e *Endpoint) remember(v *voter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.old = append(slices.DeleteFunc(e.old, (*voter).gone), v)
}

// cutAll ends whatever is left at the end.
func (e *Endpoint) cutAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.old {
		v.cutNow()
	}
}

// leadsTo are the voters of the route.
func (e *Endpoint) leadsTo() (out []*voter) {
	r := e.route.Load()
	for _, v := range []*voter{r.reads, r.writes} {
		if v != nil && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// Facts are where requests are led, for the host's report.
func (e *Endpoint) Facts() *fitness.EndpointFacts {
	r := e.route.Load()
	f := &fitness.EndpointFacts{Clients: int(e.clients.Load())}
	if r.reads != nil {
		f.Reads, f.Writes = etcd.ID(r.reads.id), etcd.ID(r.writes.id)
	} else if r.err != nil {
		f.Error = r.err.Error()
	}
	if t := e.trouble.Load(); t != nil && *t != "" {
		f.Error = *t
	}
	e.mu.Lock()
	e.old = slices.DeleteFunc(e.old, (*voter).gone)
	on := append(e.leadsTo(), e.old...)
	e.mu.Unlock()
	for _, v := range on {
		f.On = append(f.On, etcd.ID(v.id))
	}
	slices.Sort(f.On)
	f.On = slices.Compact(f.On)
	return f
}
