package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"suffrage/agent"
	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership"
	"suffrage/membership/control"
)

// BenchmarkRoundOverTLS is one round of a controller over 200 agents: each a
// TLS listener of its own on loopback, pinned by key, pulled over HTTP/2 and
// judged. etcd is played. Agents and controller share the cores.
func BenchmarkRoundOverTLS(b *testing.B) {
	const agents, voters = 200, 3
	period := 3 * time.Second
	fleet := newPlayedAgents(b, agents, period)
	client := agent.NewClient(fleet.keys[0], func() *identity.Roster { return fleet.roster })
	defer client.Close()
	g := &control.Gatherer{
		Agents: client, Cluster: playedEtcd(voters), Book: noBook{},
		Hosts: func() []control.Roster {
			var out []control.Roster
			for _, h := range fleet.roster.Hosts() {
				out = append(out, control.Roster{Name: h.Name, Address: h.Address.String()})
			}
			return out
		},
		Policy: membership.Policy{Mode: "dry-run", Target: voters, Maximum: 5, Period: fitness.Duration(period),
			StallTime: fitness.Duration(time.Minute), Limits: fitness.DefaultLimits()},
		HostTimeout: time.Minute, // the first round pulls everything
	}
	round := func() {
		in, err := g.Gather(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		d := membership.Decide(in)
		for _, h := range in.View.Hosts {
			if !h.Reachable {
				b.Fatal(h.Error)
			}
		}
		if d.Kind != membership.Steady {
			b.Fatal(d.Key())
		}
	}
	round() // connects, and pulls all that the agents have
	b.ReportAllocs()
	for b.Loop() {
		fleet.ticks++
		round()
	}
}

// playedAgents answer with well-behaved samples. Each tick is a period later.
type playedAgents struct {
	keys   []*identity.Key
	roster *identity.Roster
	period time.Duration
	began  time.Time
	ticks  int
}

func newPlayedAgents(b *testing.B, n int, period time.Duration) *playedAgents {
	f := &playedAgents{period: period, began: time.Now().Add(-500 * period)}
	var hosts []identity.RosterHost
	var listeners []net.Listener
	for i := range n {
		key, err := identity.GenerateKey()
		if err != nil {
			b.Fatal(err)
		}
		address := netip.AddrFrom4([4]byte{127, 8, byte(i / 250), byte(i%250 + 1)})
		l, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
		if err != nil {
			b.Fatal(err)
		}
		f.keys, listeners = append(f.keys, key), append(listeners, l)
		hosts = append(hosts, identity.RosterHost{Name: fmt.Sprintf("h%d", i+1), Address: address,
			Port: uint16(l.Addr().(*net.TCPAddr).Port), Fingerprint: key.Fingerprint()})
	}
	roster, err := identity.NewRoster(hosts)
	if err != nil {
		b.Fatal(err)
	}
	f.roster = roster
	for i, l := range listeners {
		srv := &http.Server{
			Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.report(w, r, i, hosts) }),
			TLSConfig: identity.ServerTLS(f.keys[i], func() *identity.Roster { return roster }, "h2"),
			Protocols: new(http.Protocols),
			ErrorLog:  log.New(io.Discard, "", 0),
		}
		srv.Protocols.SetHTTP2(true)
		go func() { _ = srv.ServeTLS(l, "", "") }() // ends with Close
		b.Cleanup(func() { _ = srv.Close() })
	}
	return f
}

func (f *playedAgents) report(w http.ResponseWriter, r *http.Request, i int, hosts []identity.RosterHost) {
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64) // 0 where it is not there
	last, now := uint64(500+f.ticks), time.Now()
	report := fitness.Report{Version: fitness.ReportVersion, Host: hosts[i].Name, Instance: "one", Software: "test",
		Now: now.UnixMicro(), Period: fitness.Duration(f.period), Last: last,
		Facts: fitness.Facts{MemoryTotal: 8 << 30, DiskFree: 1 << 40, Disk: "ext4 on /dev/vda", Link: fitness.Link{Class: fitness.Wired}, Probes: []fitness.ProbeStatus{}}}
	add := func(s fitness.Signal, peer string, v float64) {
		series := fitness.Series{Signal: s, Peer: peer}
		for n := max(after, last-min(last, 120)) + 1; n <= last; n++ {
			// The newest is of now, whatever the machine's speed.
			at := now.Add(-time.Duration(last-n) * f.period)
			series.Samples = append(series.Samples, fitness.Sample{Seq: n, At: at.UnixMicro(), Value: v})
		}
		report.Series = append(report.Series, series)
	}
	add(fitness.WALFsync, "", 0.001)
	add(fitness.BackendCommit, "", 0.002)
	add(fitness.Memory, "", 6<<30)
	add(fitness.Stability, "", 0)
	peers := 0
	for j := range hosts {
		if j != i && peers < agent.MaxPeers {
			peers++
			add(fitness.RTT, hosts[j].Name, 0.002)
			add(fitness.Clock, hosts[j].Name, 0.001)
		}
	}
	_ = json.NewEncoder(w).Encode(report)
}

type playedEtcd int

func (n playedEtcd) Observe(context.Context) (v membership.View) {
	v.ClusterID = "c1"
	var ids []string
	for i := range int(n) {
		ids = append(ids, strconv.Itoa(i+1))
	}
	for i := range int(n) {
		v.Members = append(v.Members, membership.Member{ID: ids[i], Name: fmt.Sprintf("h%d", i+1), Host: fmt.Sprintf("h%d", i+1),
			Responding: true, Leader: "1", Version: "3.7.3", RaftIndex: 9, AppliedIndex: 9, Opinion: ids})
	}
	return v
}

type noBook struct{}

func (noBook) Read(context.Context) (control.Entries, error)           { return control.Entries{}, nil }
func (noBook) Membership(_ context.Context, _ *membership.View) error  { return nil }
func (noBook) Previous(context.Context) (*membership.Previous, error)  { return nil, nil }
func (noBook) Remember(_ context.Context, _ membership.Previous) error { return nil }
