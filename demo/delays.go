package demo

import (
	"net/netip"
	"sync"
	"time"
)

// Delays are what the hosts' round trips are lengthened by, by mesh address.
// They may be changed while relays use them.
type Delays struct {
	mu sync.RWMutex
	of map[netip.Addr]time.Duration
}

// Set makes every round trip to and from the host d longer, from now on. Bytes
// that are already on their way keep the delay they got.
func (d *Delays) Set(host netip.Addr, delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[netip.Addr]time.Duration{}
	}
	d.of[host] = delay
}

// between is what a round trip from source to destination is lengthened by. A
// source that is no host (a peer that etcd dialled from 127.0.0.1) adds nothing.
func (d *Delays) between(source, destination netip.Addr) time.Duration {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.of[source] + d.of[destination]
}

// has reports whether the address is a host's.
func (d *Delays) has(a netip.Addr) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, ok := d.of[a]
	return ok
}
