package observe

import (
	"context"
	"math"
	"slices"
	"time"

	"suffrage/fitness"
	"suffrage/membership/etcd"
)

// tripsWanted is how many samples a run aims at: more than the 100 that a p99
// needs, since a slow member gives fewer.
const tripsWanted = 150

// trips measures one member until end.
func (o Options) trips(ctx context.Context, url string, end time.Time) RoundTrip {
	t, err := o.Etcd.TLS()
	if err != nil {
		return RoundTrip{} // Observe has said so
	}
	c, err := etcd.Dial(url, t)
	if err != nil {
		return RoundTrip{}
	}
	defer c.Close()
	every := min(max(o.For/tripsWanted, 5*time.Millisecond), 400*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	_ = o.ping(ctx, c) // makes the connection; it is no sample
	var samples []float64
	for time.Now().Before(end) && ctx.Err() == nil {
		begun := time.Now()
		switch err := o.ping(ctx, c); {
		case err == nil:
			samples = append(samples, time.Since(begun).Seconds())
		case ctx.Err() == nil:
			samples = append(samples, math.Inf(1))
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return tripOf(samples)
}

func (o Options) ping(ctx context.Context, c *etcd.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, o.Etcd.Timeout.Std())
	defer cancel()
	return c.Ping(ctx)
}

// tripOf ranks the samples: nearest rank, lost ones after every number.
func tripOf(samples []float64) RoundTrip {
	n := len(samples)
	r := RoundTrip{Count: n}
	if n == 0 {
		return r
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := func(percent int) *fitness.Figure {
		f := fitness.Figure(sorted[(n*percent+99)/100-1])
		return &f
	}
	r.P50 = rank(50)
	if n >= fitness.WindowSize {
		r.P99 = rank(99)
	}
	for _, s := range samples {
		if math.IsInf(s, 1) {
			r.Lost++
		}
	}
	return r
}
