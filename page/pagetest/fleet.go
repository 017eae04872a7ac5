// Package pagetest makes looks at a fleet that is made up: five hosts as in the demo,
// with windows, operations and words of the owner, decided as a real one is. A Source
// of them is what tests of the page show.
package pagetest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/page"
)

// Period is the time between two samples.
const Period = 3 * time.Second

// Fleet says what is so.
type Fleet struct {
	// Slow is the host whose round trips take 150 ms more; empty: none.
	Slow string
	// Silent is the host whose agent does not answer; empty: none.
	Silent string
	// Down is the host whose member does not answer; empty: none.
	Down string
	// Stepped is the host that was stepped down to etcd-only; empty: none.
	Stepped string
	// Rename is what h1 is called instead, and Zone what its zone is.
	Rename, Zone string
	// Voters is how many of the hosts vote, 3 where it is 0; Hosts how many there are, 5.
	Voters, Hosts int
	// Reason is what the owner says of h1.
	Reason string
	// Open: an operation is under way.
	Open bool
	// Error is why the member list cannot be read.
	Error string
}

// name is that of the host with a number from 1.
func (f Fleet) name(i int) string {
	if i == 1 && f.Rename != "" {
		return f.Rename
	}
	return fmt.Sprintf("h%d", i)
}

// Look is one look at the fleet at now.
func (f Fleet) Look(now time.Time) page.Look {
	if f.Voters == 0 {
		f.Voters = 3
	}
	if f.Hosts == 0 {
		f.Hosts = 5
	}
	in := membership.Inputs{Version: membership.InputsVersion, Now: now,
		Policy: membership.Policy{Mode: membership.DryRun, Target: f.Voters, Maximum: 9, Period: fitness.Duration(Period), StallTime: fitness.Duration(5 * time.Minute),
			Soak: fitness.Duration(30 * time.Second), Limits: fitness.DefaultLimits()},
		View: f.view(now)}
	series := map[string][]fitness.Series{}
	for _, h := range in.View.Hosts {
		series[h.Name] = f.series(h.Name, now)
		for _, s := range series[h.Name] {
			in.Readings = append(in.Readings, fitness.Read(s, fitness.Context{Host: h.Name, Now: now, Period: Period, NotBefore: in.View.MembershipSince,
				Limit: in.Policy.Limits.For(s.Signal, h.Facts.MemoryTotal)}))
		}
	}
	in.Operations = ended(now)
	if f.Open {
		in.Policy.Mode = membership.Active
		in.Open = open(now)
	}
	return page.Look{Inputs: in, Decision: membership.Decide(in), Leads: true, Controller: "h1", Since: now.Add(-26 * time.Hour),
		Series: func(host string) []fitness.Series { return series[host] }}
}

func (f Fleet) view(now time.Time) membership.View {
	day := now.Add(-30 * 24 * time.Hour)
	v := membership.View{At: now, ClusterID: "cdf818194e3a8c32", RecordedClusterID: "cdf818194e3a8c32", Error: f.Error, MembershipSince: day}
	var list []string
	for i := 1; i <= f.Voters; i++ {
		list = append(list, id(i))
	}
	for i := 1; i <= f.Hosts; i++ {
		h := membership.Host{Name: f.name(i), Address: fmt.Sprintf("100.64.0.%d", i), Reachable: f.name(i) != f.Silent, Since: day, Software: "v1.0.0",
			Mark: membership.Mark{Eligible: &membership.Say{Value: true, By: "anna@laptop", At: day, Reason: "wired, SSD"}},
			Facts: fitness.Facts{Zone: "zone-" + string("abcca"[(i-1)%5]), Link: fitness.Link{Class: fitness.Wired, Device: "eth0"}, MemoryTotal: 8 << 30,
				DiskFree: 60 << 30, Disk: "ext4 on /dev/nvme0n1p2", Probes: []fitness.ProbeStatus{},
				Server: &fitness.ServerFacts{Role: "standby", Fenced: false}}}
		if i == 1 && f.Zone != "" {
			h.Facts.Zone = f.Zone
		}
		if i == 1 {
			h.Mark.Pinned = &membership.Say{Value: true, By: "anna@laptop", At: day, Reason: f.Reason}
		}
		if h.Name == f.Stepped {
			h.Facts.Server.Grade, h.Facts.Server.Stepped = fitness.EtcdOnly, true
		}
		if !h.Reachable {
			h.Error = fmt.Sprintf("agent: pull report of host %s at %s:7400: no answer in time: is the host awake, the agent running, the mesh up?", h.Name, h.Address)
		}
		if i <= f.Voters {
			h.Facts.Server.Role, h.Facts.Server.Running, h.Facts.Server.Datastore = "voter", true, true
			h.Facts.Member = &fitness.MemberFacts{Started: day.UnixMicro(), ElectionTimeout: fitness.Duration(time.Second)}
			v.Members = append(v.Members, membership.Member{ID: id(i), Name: h.Name, Host: h.Name, PeerURLs: []string{"https://" + h.Address + ":2380"},
				ClientURLs: []string{"https://" + h.Address + ":2379"}, Responding: (f.Error == "" || i == 1) && h.Name != f.Down, Since: day, Leader: id(2), RaftTerm: 7, RaftIndex: 90210,
				AppliedIndex: 90210, Version: "3.7.3", DBSize: 21 << 20, DBInUse: 17 << 20, Quota: 2 << 30, Opinion: list})
			if m := &v.Members[len(v.Members)-1]; !m.Responding {
				m.Error = "no answer within 2s"
			}
		}
		v.Hosts = append(v.Hosts, h)
	}
	return v
}

func id(i int) string { return fmt.Sprintf("8e9e05c5216%05x", i) }

// series are what a host's agent told: the same at each call.
func (f Fleet) series(host string, now time.Time) []fitness.Series {
	var out []fitness.Series
	add := func(sig fitness.Signal, peer string, base, spread float64) {
		s := fitness.Series{Signal: sig, Peer: peer}
		for i := range fitness.SeriesSize {
			wave := math.Abs(math.Sin(float64(i*7+len(out)*31)) * math.Cos(float64(i*3)))
			at := now.Add(-Period * time.Duration(fitness.SeriesSize-1-i))
			s.Samples = append(s.Samples, fitness.Sample{Seq: uint64(i*100 + len(out) + 1), At: at.UnixMicro(), Value: base + spread*wave})
		}
		out = append(out, s)
	}
	for i := 1; i <= f.Hosts; i++ {
		peer := f.name(i)
		if peer == host {
			continue
		}
		base := 0.0008 + 0.0004*float64(i)
		if f.Slow == host || f.Slow == peer {
			base += 0.15
		}
		add(fitness.RTT, peer, base, base/2)
		add(fitness.Clock, peer, 0.004, 0.002)
	}
	add(fitness.WALFsync, "", 0.0011, 0.003)
	add(fitness.BackendCommit, "", 0.002, 0.009)
	add(fitness.Memory, "", 5.1e9, 3e8)
	add(fitness.Stability, "", 0, 0)
	return out
}

func ended(now time.Time) []membership.Operation {
	before, after := fitness.Figure(0.151), fitness.Figure(0.0021)
	begun := now.Add(-50 * time.Hour)
	steps := func(begun time.Time, names ...string) (out []membership.StepRecord) {
		for i, n := range names {
			out = append(out, membership.StepRecord{Name: n, Begun: begun.Add(time.Duration(i*4) * time.Second), Ended: begun.Add(time.Duration(i*4+4) * time.Second)})
		}
		return out
	}
	done := membership.Operation{ID: "20260301t000000-1", Out: "h5", In: "h3", By: membership.ByController, Why: "h5: rtt to h1 p99 151 ms, limit 100 ms for a whole window", Begun: begun,
		Ended: begun.Add(20 * time.Second), Outcome: membership.Completed, MembersBefore: []string{"a1", "b2", "c3"}, MembersAfter: []string{"a1", "b2", "d4"},
		WorstBefore: &before, WorstAfter: &after, Steps: steps(begun, "snapshot", "join", "promote", "soak", "remove"),
		Snapshot: &membership.SnapshotRef{Host: "h1", File: "20260301t000000-1.db", Revision: 812, Size: 21 << 20, Hash: "9f"},
		Figures:  []membership.Datum{{Name: "rtt", Value: before, Unit: "s", Peer: "h1"}}}
	begun = begun.Add(-90 * time.Hour)
	undone := membership.Operation{ID: "20260225t000000-1", Out: "h2", In: "h4", By: "ben@h1", Begun: begun, Ended: begun.Add(8 * time.Second), Outcome: membership.Undone,
		TurnedBack: "h4 was fit and is not any more", Steps: steps(begun, "snapshot", "join")}
	return []membership.Operation{done, undone}
}

func open(now time.Time) *membership.Operation {
	begun := now.Add(-9 * time.Second)
	before := fitness.Figure(0.151)
	return &membership.Operation{ID: "20260303t000000-7", Out: "h3", In: "h4", OutMember: id(3), InPeer: "https://100.64.0.4:2380", By: membership.ByController, Why: "h3 is slow", Begun: begun,
		ClusterID: "cdf818194e3a8c32", MembersBefore: []string{id(1), id(2), id(3)}, WorstBefore: &before,
		Steps: []membership.StepRecord{{Name: "snapshot", Begun: begun, Ended: begun.Add(3 * time.Second)}, {Name: "join", Begun: begun.Add(3 * time.Second), Note: "the learner is 120 entries behind"}}}
}

// Source gives looks at a fleet that can be changed. Safe for concurrent use.
type Source struct {
	mu    sync.Mutex
	fleet Fleet
	err   error
	late  time.Duration
}

// Set changes what is so.
func (s *Source) Set(f Fleet) { s.mu.Lock(); defer s.mu.Unlock(); s.fleet, s.err, s.late = f, nil, 0 }

// Fail makes looks fail, and Late makes them old.
func (s *Source) Fail(err error)       { s.mu.Lock(); defer s.mu.Unlock(); s.err = err }
func (s *Source) Late(d time.Duration) { s.mu.Lock(); defer s.mu.Unlock(); s.late = d }

// Look is page.Source.
func (s *Source) Look(context.Context) (page.Look, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Look(time.Now().UTC().Add(-s.late)), s.err
}

// Hostile is text that would do harm as HTML, as an attribute or in a script.
var Hostile = strings.Join([]string{`<img src=x onerror="document.title='owned'">`, `"><script>document.title='owned'</script>`, `' onmouseover='x`, `</title></svg>{{.}}`, `javascript:x`}, " ")
