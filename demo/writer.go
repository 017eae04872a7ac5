package demo

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// writePause lies between two writes of the demo's client.
	writePause = 10 * time.Millisecond
	// writeTry is how long one try may take; writePatience is when a write that
	// no try carried out counts as failed. A put that was forwarded to a leader
	// that is gone is lost and waits for nothing, so it is tried again.
	writeTry      = time.Second
	writePatience = 10 * time.Second
)

// Writes is what a client saw that wrote all the time.
type Writes struct {
	Writes  int
	Failed  int
	Slowest time.Duration
}

// writer puts one key after the other for as long as it runs, each again until
// it is answered, as any client of etcd does.
type writer struct {
	client *clientv3.Client
	seen   Writes
}

// Run writes until ctx ends.
func (w *writer) Run(ctx context.Context) Writes {
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		key, value := fmt.Sprintf("/demo/%d", n%100), fmt.Sprint(n)
		for {
			try, cancel := context.WithTimeout(ctx, writeTry)
			_, err := w.client.Put(try, key, value)
			cancel()
			if ctx.Err() != nil {
				return w.seen // stopped half way: neither done nor failed
			}
			if err == nil {
				w.seen.Writes++
				w.seen.Slowest = max(w.seen.Slowest, time.Since(began))
				break
			}
			if time.Since(began) > writePatience {
				w.seen.Failed++
				break
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(writePause):
		}
	}
	return w.seen
}
