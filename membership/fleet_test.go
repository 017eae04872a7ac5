package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"suffrage/fitness"
)

// fleet is a made-up cluster for tests. Its readings are not made up: they come
// from series of samples through fitness.Read, as they do in production.
type fleet struct {
	in     Inputs
	series map[reading]string // what was sampled, as runs such as "297x20ms 3xlost"
	errors map[reading]string // what a probe says that fails
}

type reading struct {
	signal     fitness.Signal
	host, peer string
}

var testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const testPeriod = 3 * time.Second

// newFleet has h1 to hN voting and standbys behind them, all of them eligible,
// wired and as healthy as can be.
func newFleet(voters, standbys int) *fleet {
	f := &fleet{series: map[reading]string{}, errors: map[reading]string{}}
	f.in = Inputs{Version: InputsVersion, Now: testNow,
		Policy: Policy{Mode: "dry-run", Target: voters, Maximum: voters + 2, Period: fitness.Duration(testPeriod),
			StallTime: fitness.Duration(5 * time.Minute), Limits: fitness.DefaultLimits()},
		View: View{At: testNow, ClusterID: "c1", RecordedClusterID: "c1", MembershipSince: testNow.Add(-time.Hour)}}
	for i := range voters + standbys {
		name := "h" + strconv.Itoa(i+1)
		f.in.View.Hosts = append(f.in.View.Hosts, Host{Name: name, Address: fmt.Sprintf("10.0.%d.%d", (i+1)/256, (i+1)%256), Reachable: true,
			Since: testNow.Add(-time.Hour), Software: "v1", Mark: Mark{Eligible: &Say{Value: true, By: "owner", At: testNow.Add(-time.Hour)}},
			Facts: fitness.Facts{Link: fitness.Link{Class: fitness.Wired}, MemoryTotal: 8 << 30, DiskFree: 100 << 30, Disk: "ext4 on /dev/vda"}})
		if i < voters {
			f.addMember(name)
		}
		f.series[reading{fitness.WALFsync, name, ""}] = "300x2ms"
		f.series[reading{fitness.BackendCommit, name, ""}] = "300x4ms"
		f.series[reading{fitness.Memory, name, ""}] = "300x6GiB"
		f.series[reading{fitness.Stability, name, ""}] = "300x0"
	}
	for _, v := range f.in.View.Hosts[:voters] {
		for _, h := range f.in.View.Hosts {
			if h.Name != v.Name {
				f.ping(v.Name, h.Name, "300x20ms")
			}
		}
	}
	return f
}

func (f *fleet) addMember(host string) *Member {
	v := &f.in.View
	v.Members = append(v.Members, Member{ID: "m-" + host, Name: host, Host: host, PeerURLs: []string{"https://" + host + ":2380"},
		ClientURLs: []string{"https://" + host + ":2379"}, Responding: true, Since: testNow.Add(-time.Hour), Leader: "m-h1",
		RaftTerm: 7, RaftIndex: 90000, AppliedIndex: 90000, Version: "3.7.3", DBSize: 100 << 20})
	f.agree()
	return &v.Members[len(v.Members)-1]
}

// agree makes every member list what there is.
func (f *fleet) agree() {
	for i := range f.in.View.Members {
		f.in.View.Members[i].Opinion = opinion(f.in.View.Members)
	}
}

func (f *fleet) ping(a, b, runs string) {
	f.series[reading{fitness.RTT, a, b}] = runs
	f.series[reading{fitness.RTT, b, a}] = runs
}

func (f *fleet) host(name string) *Host {
	i := slices.IndexFunc(f.in.View.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		panic("no host " + name)
	}
	return &f.in.View.Hosts[i]
}

func (f *fleet) member(host string) *Member {
	i := slices.IndexFunc(f.in.View.Members, func(m Member) bool { return m.Host == host })
	if i < 0 {
		panic("no member on " + host)
	}
	return &f.in.View.Members[i]
}

// inputs evaluates the series.
func (f *fleet) inputs() Inputs {
	in := f.in
	in.Readings = nil
	read := map[string]fitness.Reading{} // hosts that sampled the same read the same
	for k, runs := range f.series {
		memory := int64(0)
		if k.signal == fitness.Memory {
			h, _ := in.View.HostNamed(k.host)
			memory = h.Facts.MemoryTotal
		}
		same := fmt.Sprint(k.signal, runs, memory, f.errors[k])
		r, done := read[same]
		if !done {
			r = fitness.Read(fitness.Series{Signal: k.signal, Samples: samples(k.signal, runs, in.Now), Error: f.errors[k]},
				fitness.Context{Now: in.Now, Period: testPeriod, Limit: in.Policy.Limits.For(k.signal, memory)})
			read[same] = r
		}
		r.Host, r.Peer = k.host, k.peer
		in.Readings = append(in.Readings, r)
	}
	slices.SortFunc(in.Readings, func(a, b fitness.Reading) int {
		return strings.Compare(a.Host+" "+string(a.Signal)+" "+a.Peer, b.Host+" "+string(b.Signal)+" "+b.Peer)
	})
	return in
}

// samples are runs of equal samples, the last of them taken now.
func samples(signal fitness.Signal, runs string, now time.Time) []fitness.Sample {
	var out []fitness.Sample
	for _, run := range strings.Fields(runs) {
		count, value, _ := strings.Cut(run, "x")
		n, err := strconv.Atoi(count)
		if err != nil {
			panic(runs)
		}
		m := fitness.Sample{}
		switch value {
		case "lost":
			m.State = fitness.Lost
		case "fail":
			m.State = fitness.Failed
		default:
			m.Value = sampled(signal, value)
		}
		for range n {
			out = append(out, m)
		}
	}
	for i := range out {
		out[i].Seq = uint64(i + 1)
		out[i].At = now.Add(-time.Duration(len(out)-1-i) * testPeriod).UnixMicro()
	}
	return out
}

// sampled reads 20ms, 6GiB or a bare count.
func sampled(signal fitness.Signal, s string) float64 {
	if signal.Unit() == "s" {
		d, err := time.ParseDuration(s)
		if err != nil {
			panic(err)
		}
		return d.Seconds()
	}
	return float64(size(s))
}

func size(s string) int64 {
	factor := int64(1)
	for unit, f := range map[string]int64{"GiB": 1 << 30, "MiB": 1 << 20} {
		if strings.HasSuffix(s, unit) {
			s, factor = strings.TrimSuffix(s, unit), f
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return int64(v * float64(factor))
}

// apply changes the fleet by one line of a script; script_test.go lists them.
func (f *fleet) apply(line string) error {
	w := strings.Fields(line)
	arg := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	rest := func(i int) string { return strings.Join(w[min(i, len(w)):], " ") }
	ago := func(s string) time.Time {
		if s == "" {
			return f.in.Now
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			panic(err)
		}
		return f.in.Now.Add(-d)
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return n
	}
	v := &f.in.View
	switch w[0] {
	case "rtt": // rtt A B|* RUNS, both directions
		for _, h := range v.Hosts {
			if _, measured := f.series[reading{fitness.RTT, arg(1), h.Name}]; measured && (arg(2) == "*" || arg(2) == h.Name) {
				f.ping(arg(1), h.Name, rest(3))
			}
		}
	case "ping": // ping FROM TO RUNS, one direction
		f.series[reading{fitness.RTT, arg(1), arg(2)}] = rest(3)
	case "wal_fsync", "backend_commit", "memory", "stability": // SIGNAL HOST RUNS
		f.series[reading{fitness.Signal(w[0]), arg(1), ""}] = rest(2)
	case "failing": // failing SIGNAL HOST TEXT
		k := reading{fitness.Signal(arg(1)), arg(2), ""}
		f.series[k], f.errors[k] = "300xfail", rest(3)
	case "clock":
		f.series[reading{fitness.Clock, arg(1), arg(2)}] = rest(3)
	case "unmeasured": // unmeasured SIGNAL HOST [PEER]
		delete(f.series, reading{fitness.Signal(arg(1)), arg(2), arg(3)})
	case "controllers": // controllers HOST...
		f.in.Controllers = w[1:]
	case "mark": // mark HOST pinned|eligible|ineligible|none [REASON]
		h := f.host(arg(1))
		say := func(b bool) *Say { return &Say{Value: b, By: "owner", At: f.in.Now, Reason: rest(3)} }
		switch arg(2) {
		case "pinned":
			h.Mark.Pinned = say(true)
		case "none":
			h.Mark = Mark{}
		default:
			h.Mark.Eligible = say(arg(2) == "eligible")
		}
	case "silent": // silent HOST [FOR]: its member does not answer
		m := f.member(arg(1))
		m.Responding, m.Error, m.Since = false, "no answer in time", ago(arg(2))
	case "answers": // answers HOST
		f.member(arg(1)).Responding = true
	case "agent": // agent HOST [FOR]: its agent does not answer
		h := f.host(arg(1))
		h.Reachable, h.Error, h.Since = false, "no answer in time", ago(arg(2))
	case "answering": // answering HOST: its agent does
		f.host(arg(1)).Reachable = true
	case "unstarted":
		m := f.member(arg(1))
		m.Name, m.ClientURLs, m.Responding = "", nil, false
	case "learner": // learner HOST
		f.addMember(arg(1)).Learner = true
		f.agree()
	case "on": // on HOST OTHER: the member of HOST is on OTHER ("-" is nowhere)
		f.member(arg(1)).Host = strings.Trim(arg(2), "-")
	case "leader": // leader HOST|nobody [SAYS]
		for i := range v.Members {
			if m := &v.Members[i]; arg(2) == "" || m.Host == arg(2) {
				m.Leader = "m-" + arg(1)
				if arg(1) == "nobody" {
					m.Leader = ""
				}
			}
		}
	case "version":
		f.member(arg(1)).Version = arg(2)
	case "lag":
		m, n := f.member(arg(1)), uint64(number(arg(2)))
		m.RaftIndex, m.AppliedIndex = m.RaftIndex-n, m.AppliedIndex-n
	case "opinion":
		f.member(arg(1)).Opinion = w[2:]
	case "reports":
		f.member(arg(1)).StatusErrors = []string{rest(2)}
	case "alarm": // alarm KIND HOST
		v.Alarms = append(v.Alarms, Alarm{Member: "m-" + arg(2), Kind: arg(1)})
	case "downgrade":
		v.Downgrade = arg(1)
	case "recorded":
		v.RecordedClusterID = arg(1)
	case "error":
		v.Error = rest(1)
	case "changed": // changed AGO
		v.MembershipChanged = ago(arg(1))
	case "ended": // ended AGO OUT|- IN|- OUTCOME [BEFORE AFTER]: the worst round trips
		op := Operation{ID: fmt.Sprintf("op-%d", len(f.in.Operations)+1), Ended: ago(arg(1)), Out: strings.Trim(arg(2), "-"), In: strings.Trim(arg(3), "-"), Outcome: Outcome(arg(4))}
		if arg(6) != "" {
			before, after := fitness.Figure(sampled(fitness.RTT, arg(5))), fitness.Figure(sampled(fitness.RTT, arg(6)))
			op.WorstBefore, op.WorstAfter = &before, &after
		}
		f.in.Operations = append(f.in.Operations, op)
	case "mode":
		f.in.Policy.Mode = arg(1)
	case "paused":
		f.in.Policy.Paused = &Say{Value: true, By: "owner", At: f.in.Now}
	case "request": // request OUT IN AGO [REASON]
		f.in.Request = &Request{Out: arg(1), In: arg(2), By: "anna", At: ago(arg(3)), Reason: rest(4)}
	case "grow", "shrink": // grow to N [AGO] [REASON]: the owner's word and request
		f.in.Policy.Target, f.in.Policy.Maximum = number(arg(2)), max(f.in.Policy.Maximum, number(arg(2))+1)
		f.in.Request = &Request{Target: number(arg(2)), By: "anna", At: ago(arg(3)), Reason: rest(4)}
	case "dead": // dead HOST MEMBER AGO [REASON]
		f.in.Request = &Request{Dead: arg(1), Member: arg(2), By: "anna", At: ago(arg(3)), Reason: rest(4)}
	case "stop": // stop ID: the owner takes the operation over
		f.in.Policy.Stop = &Stop{Operation: arg(1), By: "owner", At: f.in.Now}
	case "open": // open OUT IN: a swap under way, begun a minute ago, its snapshot saved
		f.open(arg(1), arg(2))
	case "growing": // growing IN TARGET: the same, with nobody to go
		f.in.Policy.Target, f.in.Policy.Maximum = number(arg(2)), number(arg(2))+1
		f.open("", arg(1))
	case "shrinking": // shrinking OUT TARGET: the same, with nobody to come
		f.in.Policy.Target = number(arg(2))
		f.open(arg(1), "")
	case "burying": // burying OUT: the same, and it is dead
		f.open(arg(1), "")
		f.in.Open.Dead = true
		f.apply("silent " + arg(1) + " 1h")
		f.apply("agent " + arg(1) + " 1h")
	case "k3s":
		f.in.Policy.Flavour = K3s
	case "grades": // grades [HEADROOM]: K3s, all voters full, regrades by themselves with headroom
		f.in.Policy.Flavour, f.in.Policy.RegradeHeadroom = K3s, size(cmp.Or(arg(1), "0"))
		for _, m := range v.Members {
			f.server(m.Host, []string{"voter", "running", "datastore", "full"})
		}
	case "regrade": // regrade HOST TO AGO [REASON]
		f.in.Request = &Request{Regrade: arg(1), To: fitness.Grade(arg(2)), By: "anna", At: ago(arg(3)), Reason: rest(4)}
	case "regraded": // regraded AGO HOST TO BY OUTCOME [untouched]
		op := Operation{ID: fmt.Sprintf("op-%d", len(f.in.Operations)+1), Ended: ago(arg(1)), Regrade: arg(2), To: fitness.Grade(arg(3)), By: arg(4), Outcome: Outcome(arg(5))}
		if arg(6) == "" {
			op.Called = op.Ended
		}
		f.in.Operations = append(f.in.Operations, op)
	case "regrading": // regrading HOST TO: under way, begun a minute ago by the controller
		f.open("", "")
		f.in.Open.Regrade, f.in.Open.To, f.in.Open.Member, f.in.Open.By = arg(1), fitness.Grade(arg(2)), f.member(arg(1)).ID, ByController
		f.in.Open.Steps, f.in.Open.Snapshot = nil, nil
		f.apply("grades 1GiB")
		if arg(2) == "full" {
			f.server(arg(1), []string{"etcd-only"})
		}
	case "unsaved":
		f.in.Open.Snapshot = nil
	case "failed": // failed VERB HOST ERROR: the newest act
		f.in.Failed = &Failure{Operation: f.in.Open.ID, Verb: Verb(arg(1)), Host: arg(2), Error: rest(3)}
	case "tried": // tried HOST...: they could not save the snapshot
		f.in.Open.Unsaved = w[1:]
	case "begun": // begun AGO
		f.in.Open.Begun = ago(arg(1))
	case "step": // step NAME [AGO]
		f.in.Open.at(arg(1), ago(arg(2)))
	case "joined": // joined HOST learner|voter [AGO]: what AddLearner and Promote make
		f.joined(arg(1), arg(2) == "learner", ago(arg(3)))
	case "forgotten": // the add had no answer
		f.in.Open.InMember = ""
	case "cluster":
		v.ClusterID, v.RecordedClusterID = arg(1), arg(1)
	case "removed": // removed HOST
		v.Members = slices.DeleteFunc(v.Members, func(m Member) bool { return m.Host == arg(1) })
		f.agree()
	case "server": // server HOST [fenced|unfenced|running|stopped|datastore|aside|voter|standby|saved|ordered|none]...
		f.server(arg(1), w[2:])
	case "asked": // asked AGO: since when the removal has been asked for
		f.in.Open.Asked, f.in.Open.Called = ago(arg(1)), ago(arg(1))
	case "lifted": // lifted AGO: the lifting of the fence was ordered
		f.in.Open.Called, f.in.Open.Unfenced = ago(arg(1)), ago(arg(1))
	case "called": // called AGO
		f.in.Open.Called = ago(arg(1))
	case "soaked":
		f.in.Open.SoakedSince = ago(arg(1))
	case "term": // term N: the Lease's; the operation's was 1
		f.in.Term = uint64(number(arg(1)))
	case "turned": // turned WHY
		f.in.Open.TurnedBack = rest(1)
	case "by":
		f.in.Open.By = arg(1)
	case "removal": // removal HOST OPERATION [REFUSED]
		v.Removals = append(v.Removals, Removal{Host: arg(1), Member: "m-" + arg(1), Operation: arg(2), At: f.in.Now, Refused: rest(3)})
	case "foreign": // foreign HOST WHO SIGN
		v.Foreign = append(v.Foreign, Foreign{Host: arg(1), Who: arg(2), Sign: rest(3)})
	case "node": // node HOST True|False|Unknown|untold [REASON]: how Ready its Node is
		f.host(arg(1)).Node = &Node{}
		if arg(2) != "untold" {
			f.host(arg(1)).Node.Ready = &Condition{Status: arg(2), Reason: rest(3), Since: ago("2m")}
		}
	case "zone":
		f.host(arg(1)).Facts.Zone = arg(2)
	case "link":
		f.host(arg(1)).Facts.Link.Class = fitness.LinkClass(arg(2))
	case "relayed": // relayed HOST PEER
		h := f.host(arg(1))
		h.Facts.Paths = append(h.Facts.Paths, fitness.Path{Peer: arg(2), Kind: "relayed"})
	case "expires": // expires HOST IN: its key of the overlay
		f.host(arg(1)).Facts.OverlayExpires = f.in.Now.Add(f.in.Now.Sub(ago(arg(2)))).UnixMicro()
	case "saves": // saves HOST IN [now]: its next scheduled snapshot
		next := f.in.Now.Add(f.in.Now.Sub(ago(arg(2))))
		f.host(arg(1)).Facts.ScheduledSnapshot = &fitness.ScheduledSnapshot{Next: next.UnixMicro(), Running: arg(3) == "now"}
	case "endpoint": // endpoint HOST MEMBERS-HOST...: where its clients are led
		e := &fitness.EndpointFacts{Clients: 1}
		for _, to := range w[2:] {
			e.On = append(e.On, "m-"+to)
		}
		f.host(arg(1)).Facts.Endpoint = e
	case "announced": // announced HOST AGO
		v.Removals = append(v.Removals, Removal{Host: arg(1), Member: "m-" + arg(1), Operation: f.in.Open.ID, At: f.in.Now, Held: true})
		f.in.Open.Asked, f.in.Open.Called = ago(arg(2)), ago(arg(2))
	case "software":
		f.host(arg(1)).Software = arg(2)
	case "free":
		f.host(arg(1)).Facts.DiskFree = size(arg(2))
	case "database":
		for i := range v.Members {
			v.Members[i].DBSize = size(arg(1))
		}
	case "unqualified":
		f.host(arg(1)).Facts = fitness.Facts{}
	case "k3s-version": // k3s-version HOST VERSION|untold
		f.host(arg(1)).Facts.K3s = strings.TrimPrefix(arg(2), "untold")
	case "lacks": // lacks HOST THING...; without a thing it is prepared
		f.host(arg(1)).Facts.Prepared = &fitness.Preparation{Ready: len(w) == 2, Lacks: w[2:]}
	case "election":
		f.in.Policy.Limits.ElectionTimeout = fitness.Duration(f.in.Now.Sub(ago(arg(1))))
	case "target":
		f.in.Policy.Target = number(arg(1))
	case "maximum":
		f.in.Policy.Maximum = number(arg(1))
	case "viewed": // viewed AGO
		v.At = ago(arg(1))
	case "roster": // roster without HOST | twice HOST | empty
		switch arg(1) {
		case "without":
			v.Hosts = slices.DeleteFunc(v.Hosts, func(h Host) bool { return h.Name == arg(2) })
		case "twice":
			v.Hosts = append(v.Hosts, *f.host(arg(2)))
		default:
			v.Hosts = nil
		}
	default:
		return fmt.Errorf("no such line: %s", line)
	}
	return nil
}

// open begins a swap that has its snapshot, under Term 1.
func (f *fleet) open(out, in string) {
	for i := range f.in.View.Hosts {
		h := &f.in.View.Hosts[i]
		h.Facts.Server = &fitness.ServerFacts{Role: "standby", Fenced: true}
		if slices.ContainsFunc(f.in.View.Members, func(m Member) bool { return m.Host == h.Name }) {
			h.Facts.Server = &fitness.ServerFacts{Role: "voter", Running: true, Datastore: true}
		}
	}
	for _, h := range f.in.View.Hosts {
		if h.Name != out && out != "" && in != "" {
			f.ping(out, h.Name, "300x300ms")
		}
	}
	f.in.Term = 1
	f.in.Policy.Mode, f.in.Policy.Soak = Active, fitness.Duration(30*time.Second)
	f.in.Now = f.in.Now.Add(-time.Minute)
	p, by := Plan{Out: out, In: in}, ByController
	if out != "" {
		p.OutMember = f.member(out).ID
	}
	if out == "" || in == "" {
		by = "anna"
	}
	op := Begin(f.in, p, 1, by, "https://"+in+":2380")
	f.in.Now = f.in.Now.Add(time.Minute)
	op.ID = "op"
	op.Snapshot = &SnapshotRef{Host: "h2", File: "op.db"}
	op.at("snapshot", op.Begun)
	f.in.Open = &op
}

func (f *fleet) joined(host string, learner bool, at time.Time) {
	m := f.addMember(host)
	m.ID, m.Learner, m.Since = "m-new", learner, at
	f.agree()
	f.in.Open.at("join", at)
	f.in.Open.InMember = m.ID
	f.host(host).Facts.Server = &fitness.ServerFacts{Role: "voter", Running: true, Datastore: true}
}

func (f *fleet) server(host string, words []string) {
	s := f.host(host).Facts.Server
	if s == nil {
		s = &fitness.ServerFacts{Role: "standby"}
		f.host(host).Facts.Server = s
	}
	for _, w := range words {
		switch w {
		case "fenced", "unfenced":
			s.Fenced = w == "fenced"
		case "running", "stopped":
			s.Running = w == "running"
		case "datastore", "aside":
			s.Datastore = w == "datastore"
		case "voter", "standby":
			s.Role = w
		case "ordered": // its agent has seen the operation's Term
			s.Term = 1
		case "full", "etcd-only":
			s.Grade, s.Stepped = fitness.Grade(w), w == "etcd-only"
		case "own": // by K3s's own settings
			s.Stepped = false
		case "untold":
			s.Grade, s.Stepped = "", false
		case "none":
			f.host(host).Facts.Server = nil
		case "saved":
			s.Snapshots = append(s.Snapshots, fitness.SnapshotFacts{Operation: f.in.Open.ID, File: "op.db", Revision: 9, Size: 1 << 20, Hash: "abc"})
		default:
			panic(w)
		}
	}
}
