// Package leasetest has what tests of the Lease share: a store in memory that
// behaves like a real one over a bad network, clocks that can be made to jump,
// and the suite that every store must pass.
package leasetest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"suffrage/lease"
)

// Memory is a store with one record. Each contender has a Client of its own.
type Memory struct {
	// Wrote is called for each write, in order, when it is done; may be nil.
	Wrote func(old, now lease.Record)

	late    sync.WaitGroup // calls under way
	mu      sync.Mutex
	rev     int64
	seen    lease.Seen
	garbled bool
}

// Fault is what happens to one call.
type Fault struct {
	Before, After time.Duration // until the request arrives, until the reply does
	LoseRequest   bool          // nothing is done, no reply comes
	LoseReply     bool          // it is done, no reply comes
	Conflict      bool          // a Put is answered with a conflict that there is not
	Err           error         // nothing is done, this is the reply
}

// Client is m over a network. fault says what happens to each "get" and "put";
// nil is a good network. A request that outlives the caller's context still
// arrives. In a synctest bubble all of it takes the bubble's time.
func (m *Memory) Client(fault func(op string) Fault) lease.Store {
	if fault == nil {
		fault = func(string) Fault { return Fault{} }
	}
	return client{m, fault}
}

// Wait waits until every request has arrived, also those whose callers gave up.
// A test in a bubble ends with it: the bubble's time stops with the test.
func (m *Memory) Wait() { m.late.Wait() }

// Peek is what is stored now.
func (m *Memory) Peek() lease.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen.Record
}

// Delete is somebody deleting the record by hand.
func (m *Memory) Delete() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	m.seen, m.garbled = lease.Seen{}, false
}

// Edit is somebody changing the record by hand.
func (m *Memory) Edit(change func(*lease.Record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	change(&m.seen.Record)
	m.seen.Version = lease.Version(strconv.FormatInt(m.rev, 10))
}

// Garble is somebody writing something else in its place.
func (m *Memory) Garble() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	m.garbled = true
}

func (m *Memory) get() (lease.Seen, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.garbled {
		return lease.Seen{}, lease.ErrUnreadable
	}
	s := m.seen
	s.Floor = lease.Term(m.rev)
	return s, nil
}

func (m *Memory) put(r lease.Record, old lease.Version) (lease.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.Validate(); err != nil {
		return "", fmt.Errorf("leasetest: write: %w", err)
	}
	if m.garbled || m.seen.Version != old {
		return "", lease.ErrConflict
	}
	m.rev++
	before := m.seen.Record
	m.seen = lease.Seen{Record: r, Version: lease.Version(strconv.FormatInt(m.rev, 10))}
	if m.Wrote != nil {
		m.Wrote(before, r)
	}
	return m.seen.Version, nil
}

type client struct {
	m     *Memory
	fault func(op string) Fault
}

type reply struct {
	seen    lease.Seen
	version lease.Version
	err     error
}

func (c client) Get(ctx context.Context) (lease.Seen, error) {
	r, ok := c.m.over(ctx, c.fault("get"), func() (r reply) { r.seen, r.err = c.m.get(); return r })
	if !ok {
		return lease.Seen{}, fmt.Errorf("leasetest: read: %w", context.Cause(ctx))
	}
	return r.seen, r.err
}

func (c client) Put(ctx context.Context, rec lease.Record, old lease.Version) (lease.Version, error) {
	f := c.fault("put")
	r, ok := c.m.over(ctx, f, func() (r reply) {
		if f.Conflict {
			return reply{err: lease.ErrConflict}
		}
		r.version, r.err = c.m.put(rec, old)
		return r
	})
	if !ok {
		return "", fmt.Errorf("leasetest: write: %w: %w", lease.ErrUnknown, context.Cause(ctx))
	}
	return r.version, r.err
}

// over makes a call over the network; false when no reply came in time.
func (m *Memory) over(ctx context.Context, f Fault, call func() reply) (reply, bool) {
	if f.LoseRequest {
		<-ctx.Done()
		return reply{}, false
	}
	back := make(chan reply, 1)
	m.late.Go(func() {
		time.Sleep(f.Before)
		r := reply{err: f.Err}
		if f.Err == nil {
			r = call()
		}
		time.Sleep(f.After)
		if !f.LoseReply {
			back <- r
		}
	})
	select {
	case r := <-back:
		return r, true
	case <-ctx.Done():
		return reply{}, false
	}
}
