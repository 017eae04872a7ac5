package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// probeEvery and probeTime: a put every 10 ms, each given 250 ms.
	probeEvery = 10 * time.Millisecond
	probeTime  = 250 * time.Millisecond
	// A client with the usual retry gives a try 1 s, and up after 10 s.
	tryTime, patience = time.Second, 10 * time.Second
)

// writes is what clients of the members that stay saw during something.
type writes struct {
	took time.Duration
	// gap is the longest time in which no probe succeeded.
	gap time.Duration
	// slowest and failed are of a client that tries again.
	slowest       time.Duration
	failed, wrote int
}

func (w writes) String() string {
	return fmt.Sprintf("%v | %v | %d of %d", w.gap.Round(time.Millisecond), w.slowest.Round(time.Millisecond), w.failed, w.wrote)
}

// watch writes all the time while something is done.
func (f *costFleet) watch(do func()) writes {
	ctx, cancel := context.WithCancel(f.t.Context())
	var w writes
	var all sync.WaitGroup
	began := time.Now()
	all.Go(func() { w.gap = probe(ctx, f.single) })
	all.Go(func() { w.retrying(ctx, f.client) })
	do()
	w.took = time.Since(began).Round(time.Millisecond)
	cancel()
	all.Wait()
	return w
}

// probe puts through one member after the other and gives the longest time in
// which none of that succeeded.
func probe(ctx context.Context, members []*clientv3.Client) (gap time.Duration) {
	var mu sync.Mutex
	var puts sync.WaitGroup
	last := time.Now()
	good := func() {
		mu.Lock()
		defer mu.Unlock()
		gap, last = max(gap, time.Since(last)), time.Now()
	}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			good() // what has not come by now has not come
			puts.Wait()
			return gap
		case <-tick.C:
		}
		puts.Go(func() {
			put, cancel := context.WithTimeout(ctx, probeTime)
			defer cancel()
			if _, err := members[n%len(members)].Put(put, fmt.Sprintf("/probe/%d", n%100), fmt.Sprint(n)); err == nil {
				good()
			}
		})
	}
}

// retrying writes one key after the other, each again until it is answered.
func (w *writes) retrying(ctx context.Context, client *clientv3.Client) {
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		for {
			try, cancel := context.WithTimeout(ctx, tryTime)
			_, err := client.Put(try, fmt.Sprintf("/client/%d", n%100), fmt.Sprint(n))
			cancel()
			if ctx.Err() != nil {
				return
			}
			if took := time.Since(began); err == nil || took > patience {
				w.wrote++
				w.slowest = max(w.slowest, took)
				if err != nil {
					w.failed++
				}
				break
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(probeEvery):
		}
	}
}
