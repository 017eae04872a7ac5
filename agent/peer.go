package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/probes"
)

// MaxPeers is how many other hosts an agent pings: the first by name. Each pair
// costs a connection and two series, and no fleet has that many candidates.
const MaxPeers = 64

// peer is another host that is pinged.
type peer struct {
	host    identity.RosterHost
	record  *record
	overdue func() time.Duration
	log     *slog.Logger
	pinger  *probes.Pinger
	rtt     *ring
	clock   *ring
	away    atomic.Bool
	stop    context.CancelFunc
	ended   chan struct{}
}

// awayAfter is how many pings must be lost in a row for a log line.
const awayAfter = 3

// follow starts to ping a host.
func (a *Agent) follow(ctx context.Context, h identity.RosterHost) *peer {
	p := &peer{
		host: h, record: a.record, overdue: a.schedule.overdue, log: a.log.With("peer", h.Name),
		rtt: a.record.ring(fitness.RTT, h.Name), clock: a.record.ring(fitness.Clock, h.Name),
		ended: make(chan struct{}),
	}
	dialer := pingDialer{key: a.o.Key, self: a.self(), host: h}
	p.pinger = probes.NewPinger(dialer.dial, a.o.Config.PingTimeout.Std(), p.take)
	ctx, p.stop = context.WithCancel(ctx)
	go func() {
		defer close(p.ended)
		_ = p.pinger.Run(ctx) // nil by its contract
	}()
	return p
}

// leave ends the pings and forgets what they measured.
func (p *peer) leave() {
	p.stop()
	<-p.ended
	p.record.forget(p.host.Name)
}

// take records the outcome of one ping. A lost one has no offset, so it is a
// sample of the round trip alone.
func (p *peer) take(o probes.Outcome) {
	late := max(o.Late, p.overdue())
	if !o.Lost() {
		p.record.sample(p.rtt, o.RTT.Seconds(), late, fitness.Measured, "")
		p.record.sample(p.clock, o.Offset.Seconds(), late, fitness.Measured, "")
		if p.away.CompareAndSwap(true, false) {
			p.log.Info("peer answers again")
		}
		return
	}
	if lost := p.record.sample(p.rtt, o.RTT.Seconds(), late, fitness.Lost, o.Err.Error()); lost >= awayAfter && p.away.CompareAndSwap(false, true) {
		p.log.Warn("peer does not answer pings", "err", o.Err)
	}
}

// pingDialer makes the connection that pings go over.
type pingDialer struct {
	key        *identity.Key
	self, host identity.RosterHost
}

// dial binds to the host's own mesh address, so that the pings take the mesh's
// path and not a shorter one that etcd's streams would not take.
func (d pingDialer) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(addrPort(d.self, 0))}
	raw, err := dialer.DialContext(ctx, "tcp", d.host.AddrPort().String())
	if err != nil {
		return nil, fmt.Errorf("agent: ping host %s: %w", d.host.Name, err)
	}
	conn := tls.Client(raw, identity.ClientTLS(d.key, d.host, probes.PingProtocol))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		if errors.Is(err, context.DeadlineExceeded) { // small packets made the connection; its hello is larger
			return nil, fmt.Errorf("agent: ping host %s at %s: it takes the connection and says nothing: is its agent frozen, or %s %s", d.host.Name, d.host.AddrPort(), probes.AskMTU, d.host.Address)
		}
		return nil, fmt.Errorf("agent: ping host %s at %s: %w", d.host.Name, d.host.AddrPort(), identity.Explain(err, d.key, d.host))
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != probes.PingProtocol {
		raw.Close()
		return nil, fmt.Errorf("agent: ping host %s at %s: it speaks %q, not %s: is the port an agent's?", d.host.Name, d.host.AddrPort(), got, probes.PingProtocol)
	}
	return explainingConn{conn, d}, nil
}

// explainingConn makes the alert by which a peer refuses this host's key, which
// arrives only at the first read, say what to do.
type explainingConn struct {
	net.Conn
	d pingDialer
}

func (c explainingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		err = identity.Explain(err, c.d.key, c.d.host)
	}
	return n, err
}
