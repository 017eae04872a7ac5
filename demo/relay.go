package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// dialTimeout bounds the dial to the process behind a mesh address. It is on
// this machine: either it listens or it does not.
const dialTimeout = 2 * time.Second

// maxRelayed bounds the connections of one relay: a fleet of five needs about
// thirty per port.
const maxRelayed = 512

// Relay listens on one mesh address and port and forwards each connection to
// the process that stands behind it.
//
// The way from the dialler to the host is not delayed. The way back is, by the
// delay of the host that was dialled and, where the dialler bound its own mesh
// address as agents do, by the dialler's. So a request and its reply are
// lengthened once. etcd's peers use two one-way streams per pair, one dialled
// from each side, with messages only on the way back: a message from a slow
// member is late, one to it is not, and again a round trip is lengthened once,
// whoever leads. One thing is not as on a real path: since only one way is slow,
// the agents see the clock of a slow host off by half of its delay.
type Relay struct {
	mesh, real netip.AddrPort
	delays     *Delays
	log        *slog.Logger
	listener   net.Listener
}

// ListenRelay binds the mesh address. Run serves it.
func ListenRelay(mesh, real netip.AddrPort, delays *Delays, log *slog.Logger) (*Relay, error) {
	l, err := net.Listen("tcp", mesh.String())
	if err != nil {
		return nil, fmt.Errorf("demo: relay on %s: %w", mesh, err)
	}
	return &Relay{mesh: mesh, real: real, delays: delays, log: log, listener: l}, nil
}

// Close gives the mesh address back when Run was never called.
func (r *Relay) Close() error { return r.listener.Close() }

// Run forwards until ctx ends, then closes every connection and waits for all
// of its goroutines.
func (r *Relay) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { r.listener.Close() })
	defer stop()
	defer r.listener.Close()
	var carried sync.WaitGroup
	defer carried.Wait()
	slots := make(chan struct{}, maxRelayed)
	for {
		in, err := r.listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				in.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("demo: relay on %s: %w", r.mesh, err)
		}
		select {
		case slots <- struct{}{}:
		default:
			r.log.Warn("relay is full", "addr", r.mesh, "connections", maxRelayed)
			in.Close()
			continue
		}
		carried.Go(func() {
			defer func() { <-slots }()
			r.carry(ctx, in.(*net.TCPConn))
		})
	}
}

// carry serves one connection until both ways have ended or one has failed.
func (r *Relay) carry(ctx context.Context, in *net.TCPConn) {
	defer in.Close()
	source := in.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	dialer := net.Dialer{Timeout: dialTimeout}
	if r.delays.has(source) {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
	}
	conn, err := dialer.DialContext(ctx, "tcp", r.real.String())
	if err != nil {
		// Nothing listens there: a reset is as close as an accepted
		// connection gets to "refused".
		in.SetLinger(0)
		return
	}
	out := conn.(*net.TCPConn)
	defer out.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { in.Close(); out.Close() })
	defer stop()
	var ways sync.WaitGroup
	ways.Go(func() {
		_, err := io.Copy(out, in)
		r.ended(out, err, cancel)
	})
	ways.Go(func() {
		delay := func() time.Duration { return r.delays.between(source, r.mesh.Addr()) }
		err := delayLine(ctx, in, out, delay, cancel)
		r.ended(in, err, cancel)
	})
	ways.Wait()
}

// ended passes the end of one way on to its receiver, or tears both ways down
// after a failure.
func (r *Relay) ended(to *net.TCPConn, err error, cancel func()) {
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		to.SetLinger(0)
	}
	if err != nil {
		cancel()
	}
}
