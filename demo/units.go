package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"suffrage/membership/host"
)

// UnitSocket is where a host's agent starts and stops its member.
const UnitSocket = "unit.sock"

// Unit keeps the member of one host as systemd does elsewhere: it is a
// host.Unit, and nothing but this one member can be started through it.
type Unit struct {
	supervisor *Supervisor
	// data is the host's data directory, where its fence is.
	data string
	// launch starts the member's process.
	launch func(ctx context.Context) (*Child, error)
	// Restart starts the member again this long after it ended by itself, as
	// systemd's Restart=always does; 0 never.
	Restart time.Duration

	mu     sync.Mutex
	ctx    context.Context // of Run; nil when it does not run
	child  *Child
	starts int
	again  sync.WaitGroup
}

// NewUnit makes the unit of the host with this data directory. launch starts the
// process under the supervisor.
func NewUnit(s *Supervisor, data string, launch func(context.Context) (*Child, error)) *Unit {
	return &Unit{supervisor: s, data: data, launch: launch}
}

// Run answers on the listener until ctx ends, which ends the supervisor too.
func (u *Unit) Run(ctx context.Context, l net.Listener) error {
	u.mu.Lock()
	u.ctx = ctx
	u.mu.Unlock()
	err := host.ServeUnit(ctx, l, u)
	u.mu.Lock()
	u.ctx = nil
	u.mu.Unlock()
	u.again.Wait()
	return err
}

// Start starts the member unless it runs. The fence is looked at first, so that
// a start is refused while the member still runs.
func (u *Unit) Start(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := host.Fenced(u.data); err != nil {
		return err
	}
	if u.runs() {
		return nil
	}
	c, err := u.launch(ctx)
	if err != nil {
		return err
	}
	u.child = c
	u.starts++
	if u.Restart > 0 && u.ctx != nil {
		ctx := u.ctx
		u.again.Go(func() { u.keep(ctx, c) })
	}
	return nil
}

// runs reports whether the process is there; u.mu is held.
func (u *Unit) runs() bool {
	if u.child == nil {
		return false
	}
	select {
	case <-u.child.Ended():
		return false
	default:
		return true
	}
}

// keep starts the member again once it ended by itself. A fence ends that: who
// lifts it starts the member.
func (u *Unit) keep(ctx context.Context, c *Child) {
	for {
		select {
		case <-c.Ended():
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(u.Restart):
		case <-ctx.Done():
			return
		}
		if u.supervisor.Told(c) {
			return
		}
		if u.replaced(c) {
			return // by a start that was asked for, which has a keeper of its own
		}
		// So has this one.
		if err := u.Start(ctx); err == nil || errors.Is(err, host.ErrFenced) {
			return
		}
	}
}

func (u *Unit) replaced(c *Child) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.child != c
}

// Stop ends the member.
func (u *Unit) Stop(context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.child != nil {
		u.supervisor.Stop(u.child)
	}
	return nil
}

// State is host.Unit's.
func (u *Unit) State(context.Context) (host.UnitState, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return host.UnitState{Running: u.runs(), Starts: u.starts}, nil
}

// listenUnit binds a host's socket.
func (h Host) listenUnit() (net.Listener, error) {
	path := h.Path(UnitSocket)
	if most := 107; len(path) > most {
		return nil, fmt.Errorf("demo: the path of a unix socket has at most %d bytes, %s has %d: name a shorter directory", most, path, len(path))
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("demo: host %s: %w", h.Name, err)
	}
	return l, nil
}
