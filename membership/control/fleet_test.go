package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// testFleet plays agents and etcd: the agents' series grow with the clock as
// real ones do, by clocks of their own. It runs inside synctest bubbles, where
// an hour costs nothing.
type testFleet struct {
	mu     sync.Mutex
	start  time.Time
	period time.Duration
	hosts  []string
	voters []string
	skew   map[string]time.Duration // host → its clock is ahead by
	reborn map[string]time.Time     // host → its agent started anew at
	slow   map[string]time.Time     // host → its pairs are slow since
	away   map[string]string        // host → "hang" or an error's text
	book   testBook
}

type testBook struct {
	previous  *membership.Previous
	clusterID string
	voters    string
	since     time.Time
	changed   time.Time
	fail      error
	full      error // of Remember
	torn      error // of Previous
}

func newTestFleet(period time.Duration, voters, standbys int) *testFleet {
	f := &testFleet{start: time.Now(), period: period, skew: map[string]time.Duration{}, reborn: map[string]time.Time{},
		slow: map[string]time.Time{}, away: map[string]string{}}
	for i := range voters + standbys {
		name := fmt.Sprintf("h%d", i+1)
		f.hosts = append(f.hosts, name)
		if i < voters {
			f.voters = append(f.voters, name)
		}
	}
	return f
}

// do changes the fleet while a loop looks at it.
func (f *testFleet) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *testFleet) gatherer() *Gatherer {
	limits := fitness.DefaultLimits()
	return &Gatherer{
		Agents: f, Cluster: f, Book: f,
		Hosts: func() []Roster {
			var out []Roster
			for _, h := range f.hosts {
				out = append(out, Roster{Name: h, Address: "10.0.0." + h[1:]})
			}
			return out
		},
		Policy: membership.Policy{Mode: "dry-run", Target: len(f.voters), Maximum: len(f.voters) + 2, Period: fitness.Duration(f.period),
			StallTime: fitness.Duration(5 * time.Minute), Limits: limits},
		HostTimeout: 2 * time.Second,
	}
}

func (f *testFleet) Pull(ctx context.Context, host string, after uint64) (fitness.Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch how := f.away[host]; how {
	case "":
	case "hang":
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return fitness.Report{}, fmt.Errorf("%s did not answer in time", host)
	default:
		return fitness.Report{}, errors.New(how)
	}
	born := f.start
	if t, ok := f.reborn[host]; ok {
		born = t
	}
	r := fitness.Report{Version: fitness.ReportVersion, Host: host, Instance: born.String(), Software: "test",
		Now: time.Now().Add(f.skew[host]).UnixMicro(), Period: fitness.Duration(f.period),
		Facts: fitness.Facts{Link: fitness.Link{Class: fitness.Wired}, MemoryTotal: 8 << 30, DiskFree: 100 << 30, Disk: "ext4 on /dev/vda"}}
	n := uint64(time.Since(born) / f.period)
	r.Last = n
	first := max(after, n-min(n, fitness.SeriesSize))
	add := func(s fitness.Signal, peer string, value func(at time.Time) float64) {
		series := fitness.Series{Signal: s, Peer: peer}
		for i := first + 1; i <= n; i++ {
			at := born.Add(time.Duration(i) * f.period)
			series.Samples = append(series.Samples, fitness.Sample{Seq: i, At: at.Add(f.skew[host]).UnixMicro(), Value: value(at)})
		}
		r.Series = append(r.Series, series)
	}
	constant := func(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }
	add(fitness.WALFsync, "", constant(0.001))
	add(fitness.BackendCommit, "", constant(0.002))
	add(fitness.Memory, "", constant(6<<30))
	add(fitness.Stability, "", constant(0))
	for _, p := range f.hosts[:min(len(f.hosts), 64)] { // as many as an agent pings
		if p != host {
			add(fitness.RTT, p, func(at time.Time) float64 { return f.rtt(host, p, at) })
		}
	}
	return r, nil
}

func (f *testFleet) rtt(a, b string, at time.Time) float64 {
	for _, h := range []string{a, b} {
		if since, ok := f.slow[h]; ok && at.After(since) {
			return 0.150
		}
	}
	return 0.002
}

func (f *testFleet) Observe(context.Context) (v membership.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v.ClusterID = "c1"
	var ids []string
	for _, h := range f.voters {
		ids = append(ids, "id-"+h)
	}
	for _, h := range f.voters {
		v.Members = append(v.Members, membership.Member{ID: "id-" + h, Name: h, Host: h, ClientURLs: []string{"https://" + h}, Responding: true,
			Leader: "id-" + f.voters[0], Version: "3.7.3", RaftIndex: 100, AppliedIndex: 100, Opinion: ids})
	}
	return v
}

func (f *testFleet) Read(context.Context) (Entries, error) {
	marks := map[string]membership.Mark{}
	for _, h := range f.hosts {
		marks[h] = membership.Mark{Eligible: &membership.Say{Value: true, By: "test"}}
	}
	return Entries{Marks: marks}, f.book.fail
}

func (f *testFleet) Membership(_ context.Context, v *membership.View) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.book
	if voters := fmt.Sprint(f.voters); b.voters != voters {
		if b.voters != "" {
			b.changed = v.At
		}
		b.clusterID, b.voters, b.since = v.ClusterID, voters, v.At
	}
	v.RecordedClusterID, v.MembershipSince, v.MembershipChanged = b.clusterID, b.since, b.changed
	return nil
}

func (f *testFleet) Previous(context.Context) (*membership.Previous, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book.previous, f.book.torn
}

func (f *testFleet) Remember(_ context.Context, p membership.Previous) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.book.full == nil {
		f.book.previous = &p
	}
	return f.book.full
}
