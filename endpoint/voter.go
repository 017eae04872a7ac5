package endpoint

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// voter is one way to a member, used until it is left. The same member gets a new
// one when it is well again.
type voter struct {
	id    uint64 // the member's; 0 until a look found it
	label string // how it is called in texts
	url   string
	conn  *grpc.ClientConn

	// left ends when nothing more is to be sent, cut when all that is still under
	// way has to end.
	left, cut     context.Context
	leave, cutNow context.CancelFunc

	mu      sync.Mutex
	under   int // requests under way
	closing bool
	closed  bool
}

func newVoter(url string, conn *grpc.ClientConn) *voter {
	v := &voter{url: url, conn: conn, label: url}
	v.left, v.leave = context.WithCancel(context.Background())
	v.cut, v.cutNow = context.WithCancel(context.Background())
	return v
}

// take begins a request, which done ends. It is false where the voter was left.
func (v *voter) take() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closing {
		return false
	}
	v.under++
	return true
}

func (v *voter) done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.under--; v.under == 0 && v.closing {
		v.end()
	}
}

// retire leaves the voter: watches end now, other requests by themselves, and
// after grace all that is left is cut.
func (v *voter) retire(grace time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closing {
		return
	}
	v.closing = true
	v.leave()
	if v.under == 0 {
		v.end()
		return
	}
	timer := time.AfterFunc(grace, v.cutNow)
	context.AfterFunc(v.cut, func() { timer.Stop() })
}

// end closes the connection. mu is held.
func (v *voter) end() {
	v.closed = true
	v.cutNow()
	v.conn.Close()
}

func (v *voter) gone() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}
