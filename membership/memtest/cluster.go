package memtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/membership"
)

// Election is how long an election takes, at the longest.
const Election = 3 * time.Second

// Errors as etcd gives them.
var (
	ErrNoQuorum  = errors.New("etcdserver: request timed out")
	ErrUnhealthy = errors.New("etcdserver: unhealthy cluster")
	ErrNotReady  = errors.New("etcdserver: can only promote a learner member which is in sync with leader")
	ErrNotFound  = errors.New("etcdserver: member not found")
	ErrExists    = errors.New("etcdserver: Peer URLs already exists")
	ErrLearners  = errors.New("etcdserver: too many learner members in cluster")
)

// Member is one as etcd lists it, with how far its log reaches.
type Member struct {
	ID, Host, Peer string
	Learner        bool
	Index          uint64
	Published      bool // it has started once and told its name
}

// Cluster is etcd, its hosts, and what is kept in it.
type Cluster struct {
	Now             time.Time
	ID              string
	Members         []*Member // sorted by ID
	Removed         map[string]bool
	Leader          string // ID, empty during an election
	Index           uint64 // of the leader
	Term            uint64
	Alarm           string
	Hosts           []*Host // sorted by name
	Removals        map[string]*membership.Removal
	asked           map[string]time.Time // when each host's removal was first asked for
	Lease           Lease
	History         map[string]membership.Operation
	Changed         time.Time // the newest change of members
	opinion, before []string  // the opinion before it, which one voter still has for a moment
	Policy          membership.Policy
	Request         *membership.Request // what the owner asks for
	cut             map[string]bool     // pairs of hosts that do not see each other
	elected         time.Time           // when the leader took over
	since           time.Time           // since when there has been none
	late            []lateCall
	check           checker
	trace           []event
}

// lateCall is one whose effect comes after its caller has given up.
type lateCall struct {
	at   time.Time
	name string
	do   func()
}

// New is a healthy cluster: h1 to hN vote, standbys follow.
func New(voters, standbys int) *Cluster {
	c := &Cluster{Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), ID: "c1", Removed: map[string]bool{}, Index: 500_000, Term: 7,
		Removals: map[string]*membership.Removal{}, asked: map[string]time.Time{}, History: map[string]membership.Operation{}, cut: map[string]bool{}}
	c.check.c = c
	for i := range voters + standbys {
		h := newHost(fmt.Sprintf("h%d", i+1))
		c.Hosts = append(c.Hosts, h)
		if i < voters {
			m := &Member{ID: "m-" + h.Name, Host: h.Name, Peer: Peer(h.Name), Index: c.Index, Published: true}
			c.Members = append(c.Members, m)
			h.Role, h.Fenced, h.Data, h.Running = "voter", false, m.ID, true
			h.stores++
		}
	}
	c.Leader, c.opinion = "m-h1", c.lists()
	c.check.begin()
	return c
}

// Peer is the peer URL that a host's member has.
func Peer(host string) string { return "https://" + host + ":2380" }

// soon is right after whatever was looked at now.
func (c *Cluster) soon() time.Time { return c.Now.Add(time.Millisecond) }

// Logf notes an event in the trace.
func (c *Cluster) Logf(format string, args ...any) {
	c.trace = append(c.trace, event{c.Now, format, args})
}

// event is one line of the trace, made into text when somebody reads it.
type event struct {
	at     time.Time
	format string
	args   []any
}

// Trace is the newest lines of what happened.
func (c *Cluster) Trace(most int) string {
	var b strings.Builder
	for _, e := range c.trace[max(0, len(c.trace)-most):] {
		b.WriteString(e.at.Format("15:04:05 ") + fmt.Sprintf(e.format, e.args...) + "\n")
	}
	return b.String()
}

// Host finds a host by name.
func (c *Cluster) Host(name string) *Host {
	for _, h := range c.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Member finds a member by ID, nil when it is not listed.
func (c *Cluster) Member(id string) *Member {
	for _, m := range c.Members {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// Voters are the members that vote.
func (c *Cluster) Voters() (out []*Member) {
	for _, m := range c.Members {
		if !m.Learner {
			out = append(out, m)
		}
	}
	return out
}

// lists is the opinion of a member that has applied everything.
func (c *Cluster) lists() []string {
	out := make([]string, 0, len(c.Members))
	for _, m := range c.Members {
		id := m.ID
		if m.Learner {
			id += "?"
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// alive: its process runs on its own data and the others hear it.
func (c *Cluster) alive(m *Member) bool {
	h := c.Host(m.Host)
	return h.Up && !h.Gone && !h.Frozen && h.Running && h.Data == m.ID
}

// connected is what etcd's strict check sees: a process that was killed is
// noticed at once, one that is frozen or whose host vanished is not.
func (c *Cluster) connected(m *Member) bool {
	h := c.Host(m.Host)
	return c.alive(m) || (h.Gone || h.Frozen) && h.Running && h.Data == m.ID
}

// Quorum reports whether more than half of the voters are alive.
func (c *Cluster) Quorum() bool { return c.aliveVoters() >= membership.Quorum(len(c.Voters())) }

func (c *Cluster) aliveVoters() (n int) {
	for _, m := range c.Members {
		if !m.Learner && c.alive(m) {
			n++
		}
	}
	return n
}

// Serves reports whether writes and linearizable reads are answered.
func (c *Cluster) Serves() bool { return c.Leader != "" && c.Quorum() }

// Step lets time pass: late calls land, leaders fall and rise, logs are
// followed, processes start and exit.
func (c *Cluster) Step(d time.Duration) {
	c.Now = c.Now.Add(d)
	c.land()
	c.elect()
	if c.Serves() {
		c.Index += 20
	}
	for _, m := range c.Members {
		c.follow(m, d)
	}
	for _, h := range c.Hosts {
		c.supervise(h)
	}
	c.elect()
	c.check.always()
}

func (c *Cluster) land() {
	for i := 0; i < len(c.late); i++ {
		if l := c.late[i]; !l.at.After(c.Now) {
			c.late = slices.Delete(c.late, i, i+1)
			i--
			c.Logf("lands late: %s", l.name)
			l.do()
		}
	}
}

func (c *Cluster) elect() {
	if m := c.Member(c.Leader); m == nil || m.Learner || !c.alive(m) || !c.Quorum() {
		if c.Leader != "" {
			c.Logf("leader %s is gone", c.Leader)
			c.Leader, c.since = "", c.Now
		}
	}
	if c.Leader != "" || !c.Quorum() || c.Now.Sub(c.since) < Election {
		return
	}
	var best *Member
	for _, m := range c.Voters() {
		if c.alive(m) && (best == nil || m.Index > best.Index) {
			best = m
		}
	}
	c.Term++
	c.lead(best.ID)
}

func (c *Cluster) lead(id string) {
	c.Leader, c.elected = id, c.soon()
	c.Logf("%s leads", id)
}

// follow moves a log forward. A member far behind takes a while.
func (c *Cluster) follow(m *Member, d time.Duration) {
	h := c.Host(m.Host)
	if !c.Serves() || !c.alive(m) || h.Stuck {
		return
	}
	m.Index += min(c.Index-m.Index, uint64(d.Seconds()*float64(h.Rate)))
	if !m.Published && m.Index > 0 {
		m.Published, h.portAt = true, c.Now.Add(h.Late)
	}
}

// add is what AddLearner does once it is committed.
func (c *Cluster) add(peer string, by *Caller) error {
	host := peer[len("https://") : len(peer)-len(":2380")]
	id := fmt.Sprintf("m-%s-%d", host, c.Now.Unix())
	connected := 0
	for _, m := range c.Voters() {
		if c.connected(m) {
			connected++
		}
	}
	switch {
	case !c.Serves():
		return ErrNoQuorum
	case len(c.Voters()) > 1 && connected < membership.Quorum(len(c.Voters())+1): // one voter may always get a second
		return ErrUnhealthy
	case slices.ContainsFunc(c.Members, func(m *Member) bool { return m.Peer == peer }):
		return ErrExists
	case slices.ContainsFunc(c.Members, func(m *Member) bool { return m.Learner }):
		return ErrLearners
	case c.Removed[id]:
		return ErrNotFound
	}
	c.Members = append(c.Members, &Member{ID: id, Host: host, Peer: peer, Learner: true})
	slices.SortFunc(c.Members, func(a, b *Member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	c.changed("add "+id, by)
	c.check.added(id, by)
	return nil
}

func (c *Cluster) promote(id string, by *Caller) error {
	m := c.Member(id)
	switch {
	case !c.Serves():
		return ErrNoQuorum
	case m == nil:
		return ErrNotFound
	case !m.Learner:
		return errors.New("etcdserver: can only promote a learner member")
	case m.Index*10 < c.Index*9:
		return ErrNotReady
	}
	m.Learner = false
	c.changed("promote "+id, by)
	c.check.promoted(id, by)
	return nil
}

func (c *Cluster) moveLeader(to string) error {
	m := c.Member(to)
	switch {
	case !c.Serves():
		return ErrNoQuorum
	case m == nil || m.Learner:
		return errors.New("etcdserver: bad leader transferee")
	case !c.alive(m):
		return errors.New("etcdserver: request timed out, leader transfer took too long")
	}
	c.Term++
	c.lead(to)
	return nil
}

func (c *Cluster) remove(id string, by *Caller) error {
	i := slices.IndexFunc(c.Members, func(m *Member) bool { return m.ID == id })
	switch {
	case !c.Serves():
		return ErrNoQuorum
	case i < 0:
		return ErrNotFound
	}
	m := c.Members[i]
	if !m.Learner {
		stay, connected := 0, 0
		for _, x := range c.Voters() {
			if x != m {
				stay++
				if c.connected(x) {
					connected++
				}
			}
		}
		if c.connected(m) && connected < membership.Quorum(stay) { // a target that is down may always go
			return ErrUnhealthy
		}
	}
	c.check.removing(m, by)
	c.Members = slices.Delete(c.Members, i, i+1)
	c.Removed[id] = true
	c.changed("remove "+id, by)
	c.check.removed(m, by)
	if c.Leader == id {
		c.Leader, c.since = "", c.Now
	}
	return nil
}

func (c *Cluster) changed(what string, by *Caller) {
	c.before, c.opinion = c.opinion, c.lists()
	c.check.changed, c.Changed = c.Changed, c.Now
	c.Logf("members: %s by %s", what, by.Name)
}
