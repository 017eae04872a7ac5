package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// stage is how far a connection came. A frozen process still accepts.
type stage int

const (
	dialing stage = iota
	connected
	secured
)

// Conn is one connection to one endpoint, made for one purpose. It is plain
// gRPC rather than etcd's client because that one retries on its own and drops
// the reason why a connection could not be made.
type Conn struct {
	Endpoint string

	grpc *grpc.ClientConn
	mu   sync.Mutex
	at   stage
	err  error // why the connection failed, with its type kept
}

// Dial prepares a connection; it is made by the first call. t is used for https.
func Dial(endpoint string, t *tls.Config) (*Conn, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	c := &Conn{Endpoint: endpoint}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		nc, err := c.dial(ctx, u.Host, u.Hostname(), u.Scheme == "https", t)
		if err != nil {
			c.note(err)
			return nil, err
		}
		return &watched{Conn: nc, c: c}, nil
	}
	// TLS is spoken by the dialer, so that its errors keep their types.
	c.grpc, err = grpc.NewClient("passthrough:///"+u.Host, grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), grpc.WithIdleTimeout(0))
	if err != nil {
		return nil, fmt.Errorf("etcd: connect to %s: %w", endpoint, err)
	}
	return c, nil
}

func (c *Conn) dial(ctx context.Context, addr, name string, secure bool, t *tls.Config) (net.Conn, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c.reached(connected)
	if !secure {
		return nc, nil
	}
	t = t.Clone()
	t.ServerName = name
	tc := tls.Client(nc, t)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	c.reached(secured)
	return tc, nil
}

func (c *Conn) reached(s stage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = max(c.at, s)
}

// note keeps the first reason: what follows it is its consequence.
func (c *Conn) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// Close ends the connection and everything that waits on it.
func (c *Conn) Close() error { return c.grpc.Close() }

func (c *Conn) kv() pb.KVClient                   { return pb.NewKVClient(c.grpc) }
func (c *Conn) cluster() pb.ClusterClient         { return pb.NewClusterClient(c.grpc) }
func (c *Conn) maintenance() pb.MaintenanceClient { return pb.NewMaintenanceClient(c.grpc) }

// watched notes why reading from a connection ended: with TLS 1.3 a server
// says only there that it wanted a client certificate.
type watched struct {
	net.Conn
	c *Conn
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		if errors.Is(err, io.EOF) {
			err = errHungUp
		}
		w.c.note(err)
	}
	return n, err
}

// Write looks for the other end's last words when it cannot write: gRPC closes
// the connection at once, and they would stay unread.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		if w.Conn.SetReadDeadline(time.Now().Add(lastWords)) == nil {
			_, _ = w.Read(make([]byte, 1))
		}
		w.c.note(err)
	}
	return n, err
}

// lastWords is how long to wait for what has mostly arrived already.
const lastWords = 100 * time.Millisecond

var errHungUp = errors.New("the connection was closed by the other end")

// CallError is a call to one endpoint that did not succeed.
type CallError struct {
	Op       string // what was asked, such as "status"
	Endpoint string
	Err      error
	// Accepted is true when at least a TCP connection stood.
	Accepted bool
}

func (e *CallError) Error() string { return fmt.Sprintf("etcd: %s of %s: %v", e.Op, e.Endpoint, e.Err) }
func (e *CallError) Unwrap() error { return e.Err }

// fail turns what gRPC gave into a CallError; nil stays nil. Where the
// connection itself failed, that is the error.
func (c *Conn) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &CallError{Op: op, Endpoint: c.Endpoint, Err: rpctypes.Error(err), Accepted: c.at >= connected}
	// A refusal by etcd itself (no leader, no space) may carry these codes too,
	// and comes over a connection that works.
	code := status.Code(err)
	if c.err != nil && (code == codes.Unavailable || code == codes.DeadlineExceeded) {
		e.Err = c.err
	} else if code == codes.DeadlineExceeded {
		e.Err = context.DeadlineExceeded
	}
	return e
}

// Ping reads a key that need not exist from the member's own store: one round
// trip, no quorum, no write. A refusal by etcd's authentication is an answer too.
func (c *Conn) Ping(ctx context.Context) error {
	_, err := c.kv().Range(ctx, &pb.RangeRequest{Key: []byte(checkKey), Serializable: true, CountOnly: true})
	if err != nil && isAuthRefusal(err) {
		return nil
	}
	return c.fail("read", err)
}
