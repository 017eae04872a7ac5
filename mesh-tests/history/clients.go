package history

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// pause lies between two calls of one client.
	pause = 30 * time.Millisecond
	// try is how long one call may take, writePatience how long a client tries
	// again until a write counts as failed: a put that was forwarded to a leader
	// that is gone is lost and waits for nothing.
	try           = time.Second
	writePatience = 10 * time.Second
	clients       = 4
	keys          = 3
)

// Clients put and get a few keys under Prefix through one client of etcd for as
// long as Run lasts.
type Clients struct {
	Client *clientv3.Client
	Prefix string

	mu      sync.Mutex
	began   time.Time
	history History
	seen    Writes
	good    time.Duration // the newest acknowledged put
}

// Writes is what the clients saw of their writes.
type Writes struct {
	Acknowledged int
	// Failed are those that no try within 10 s carried out.
	Failed int
	// Slowest is the longest from the first try of a write to its acknowledgement.
	Slowest time.Duration
	// Gap is the longest time in which no client's put was acknowledged.
	Gap time.Duration
	// Failures are from the first try to the end of the last one of those that failed.
	Failures []Span `json:",omitempty"`
}

// Span is a time since the history began.
type Span struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Meets reports whether both were at some moment.
func (s Span) Meets(o Span) bool { return s.From <= o.To && o.From <= s.To }

// Run makes calls until ctx ends, and gives what they saw. It returns within 2 s
// where they are answered, and within 12 s anyway.
func (c *Clients) Run(ctx context.Context) (History, Writes) {
	c.began = time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { c.client(ctx, i) })
	}
	all.Wait()
	c.mu.Lock()
	if c.seen.Acknowledged > 0 { // an outage that lasts to the end is one, too
		c.seen.Gap = max(c.seen.Gap, time.Since(c.began)-c.good)
	}
	c.mu.Unlock()
	// What was written last is read once more. Without that nobody would miss it.
	ended := time.Now()
	for k := range keys {
		for !c.get(context.WithoutCancel(ctx), 0, fmt.Sprintf("%s%d", c.Prefix, k)) && time.Since(ended) < writePatience {
			time.Sleep(pause)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.history, c.seen
}

// Acknowledged is how many puts were until now.
func (c *Clients) Acknowledged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.Acknowledged
}

func (c *Clients) client(ctx context.Context, number int) {
	rng := rand.New(rand.NewSource(int64(number)))
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s%d", c.Prefix, rng.Intn(keys))
		if rng.Intn(3) == 0 {
			c.get(ctx, number, key)
		} else {
			c.write(ctx, number, n, key)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// write puts until it is acknowledged, each try a value of its own: two tries of
// one value could not be told apart.
func (c *Clients) write(ctx context.Context, number, n int, key string) {
	first := time.Now()
	for t := 0; ctx.Err() == nil; t++ {
		o := Operation{Client: number, Key: key, Put: fmt.Sprintf("%d-%d-%d", number, n, t), Call: time.Since(c.began)}
		call, cancel := context.WithTimeout(ctx, try)
		_, err := c.Client.Put(call, key, o.Put)
		cancel()
		o.Return, o.Unknown = time.Since(c.began), err != nil
		c.add(o)
		if err == nil {
			c.acknowledged(o.Return, time.Since(first))
			return
		}
		if time.Since(first) > writePatience {
			c.mu.Lock()
			c.seen.Failed++
			c.seen.Failures = append(c.seen.Failures, Span{first.Sub(c.began), o.Return})
			c.mu.Unlock()
			return
		}
	}
}

func (c *Clients) acknowledged(at, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.Acknowledged++; c.seen.Acknowledged > 1 {
		c.seen.Gap = max(c.seen.Gap, at-c.good)
	}
	c.good = max(c.good, at)
	c.seen.Slowest = max(c.seen.Slowest, took)
}

// get reports whether there was an answer.
func (c *Clients) get(ctx context.Context, number int, key string) bool {
	o := Operation{Client: number, Key: key, Call: time.Since(c.began)}
	call, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	g, err := c.Client.Get(call, key)
	o.Return, o.Unknown = time.Since(c.began), err != nil
	if err == nil && len(g.Kvs) > 0 {
		o.Got = string(g.Kvs[0].Value)
	}
	c.add(o)
	return err == nil
}

func (c *Clients) add(o Operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, o)
}
