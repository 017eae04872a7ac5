package memtest

import (
	"fmt"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/control"
)

// Host is a machine with an agent and, perhaps, an etcd.
type Host struct {
	Name string

	// What is so now, and who cannot reach whom.
	Up     bool // it has power
	Agent  bool // its agent runs
	Gone   bool // nobody reaches it, and no connection was closed
	Frozen bool // its etcd is stopped
	Running,
	Broken, // its etcd does not start
	Stuck bool // its etcd does not follow the leader
	FullDisk bool          // no snapshot can be saved
	Rate     uint64        // entries a second while catching up
	Late     time.Duration // from its first start until its client port opens
	Mark     membership.Mark

	// What it is like: since when it has been bad or good.
	Bad       bool
	BadSince  time.Time
	brokeAt   time.Time // the last time that something of the above went wrong
	mendedAt  time.Time
	answersAt time.Time // since when its member answers, zero while it does not
	portAt    time.Time
	startAt   time.Time
	powerLoss int           // writes until the power goes, 0 for never
	agentLoss int           // the same of its agent, which ends then
	runs      fitness.Grade // of the process that runs
	bad       fitness.Grade // it does not start with
	// Pressed: it is short of memory, until it runs etcd only (1) or then, too (2).
	Pressed    int
	PressedAt  time.Time // since when it has been what it is
	regradedAt time.Time

	// On disk.
	Role      string
	Fenced    bool
	Data      string // the member whose datastore is in place
	Aside     []string
	Seen      uint64 // the highest Term
	Snapshots []fitness.SnapshotFacts
	starts    int  // since the fence
	dark      bool // it has no power for long
	stopped   bool // it votes, and an operation that was stopped has left it fenced
	stores    int  // ever made
	joining   string
	settings  fitness.Grade // of K3s, at its next start
	stepped   bool          // by what Suffrage wrote
	told      *Caller       // who told it to start
	buried    bool          // its owner takes it for dead, and it is off (k3s)
	leftover  bool          // it lost its member while nobody could reach its agent
}

func newHost(name string) *Host {
	yes := &membership.Say{Value: true, By: "owner"}
	return &Host{Name: name, Up: true, Agent: true, Rate: 100_000, Late: 6 * time.Second, Mark: membership.Mark{Eligible: yes}, Role: "standby", Fenced: true}
}

// Reachable reports whether its agent answers.
func (h *Host) Reachable() bool { return h.Up && h.Agent && !h.Gone }

// rests: it cannot start, and nothing is left of its member but what is aside.
func (h *Host) rests() bool { return h.Fenced && !h.Running && h.Data == "" && h.Role == "standby" }

func (h *Host) String() string {
	return fmt.Sprintf("fenced %t, running %t, datastore %q, role %s", h.Fenced, h.Running, h.Data, h.Role)
}

// errPower: the machine went dark in the middle of an order.
var errPower = fmt.Errorf("%w: the host went away", control.ErrUnknown)

// write does one durable thing, unless the power goes before it.
func (c *Cluster) write(h *Host, what string, do func()) error {
	if h.agentLoss > 0 {
		if h.agentLoss--; h.agentLoss == 0 {
			c.Logf("the agent of %s ends before %s", h.Name, what)
			h.Agent, h.brokeAt = false, c.soon()
			return errPower
		}
	}
	if h.powerLoss > 0 {
		if h.powerLoss--; h.powerLoss == 0 {
			c.Logf("power loss on %s before %s", h.Name, what)
			c.powerOff(h)
		}
	}
	if !h.Up {
		return errPower
	}
	do()
	return nil
}

func (c *Cluster) powerOff(h *Host) {
	h.Up, h.Running, h.Frozen, h.brokeAt = false, false, false, c.soon()
}

// supervise is the service manager: a unit that is enabled is started, again
// and again, unless it is fenced; the process of a removed member exits.
func (c *Cluster) supervise(h *Host) {
	if !h.Up {
		return
	}
	if h.Running && c.Removed[h.Data] && !h.Gone && !h.Frozen {
		c.Logf("etcd on %s exits: removed", h.Name)
		h.Running = false
	}
	if !h.Running && h.Role == "voter" && !h.Broken {
		c.start(h)
	}
}

// start is what the unit does. On the data of a removed member it exits at once.
func (c *Cluster) start(h *Host) {
	switch {
	case h.Fenced || h.joining == "" && h.Data == "" && c.k3s == nil:
		return
	case c.Removed[h.Data] && !h.Gone:
		c.check.rejoins(h)
		if c.k3s == nil {
			return
		}
		h.Aside, h.Data = append(h.Aside, h.Data), "" // it sees the tombstone
	}
	if h.settings != "" && h.settings == h.bad {
		return
	}
	if h.Data == "" && c.k3s == nil {
		h.Data = h.joining
		h.stores++
	}
	h.Running, h.startAt, h.runs = true, c.Now, h.settings
	h.starts++
	c.check.started(h)
}

// order is what an agent does for a controller. It refuses a Term below the
// highest it has seen, which it writes down first.
func (c *Cluster) order(h *Host, o control.Order) error {
	if !h.Reachable() {
		return fmt.Errorf("agent on %s does not answer", h.Name)
	}
	if o.Term < h.Seen {
		return fmt.Errorf("agent on %s: term %d is below %d", h.Name, o.Term, h.Seen)
	}
	var steps []func() error
	do := func(what string, f func()) {
		steps = append(steps, func() error { return c.write(h, what, f) })
	}
	do("term", func() { h.Seen = o.Term })
	fence := func() { h.Fenced, h.starts = true, 0 }
	switch o.Verb {
	case membership.SaveSnapshot:
		if h.FullDisk {
			return fmt.Errorf("agent on %s: no space left on device", h.Name)
		}
		for _, s := range h.Snapshots {
			if s.Operation == o.Operation {
				return nil
			}
		}
		do("snapshot", func() {
			h.Snapshots = append(h.Snapshots, fitness.SnapshotFacts{Operation: o.Operation, File: o.Operation + ".db", Revision: int64(c.Index), Size: 1 << 20, Hash: "abc"})
		})
	case membership.StartMember:
		if h.Data != "" && h.Data != o.Member {
			return fmt.Errorf("agent on %s: a datastore lies there", h.Name)
		}
		do("join", func() { h.joining, h.stepped = o.Member, false })
		if c.k3s != nil { // a new server is a whole one
			do("settings", func() { h.settings = fitness.Full })
		}
		do("role", func() { h.Role = "voter" })
		do("fence", func() { h.Fenced = false })
		do("start", func() {
			if !h.Running && !h.Broken {
				c.start(h)
			}
		})
	case membership.Fence:
		do("fence", func() {
			if !h.Fenced {
				fence()
			}
		})
	case membership.Unfence:
		do("fence", func() { h.Fenced = false })
	case membership.Regrade:
		if h.Fenced || h.Role != "voter" {
			return fmt.Errorf("agent on %s: it is no server", h.Name)
		}
		if h.settings == o.To && h.Running && h.runs == o.To {
			break // it runs with it already
		}
		do("settings", func() { h.settings, h.stepped = o.To, o.To == fitness.EtcdOnly })
		do("restart", func() { c.restart(h, o) })
	case membership.Retire:
		do("fence", func() {
			if !h.Fenced {
				fence()
			}
		})
		do("stop", func() { h.Running, h.Frozen = false, false })
		do("aside", func() {
			if h.Data != "" {
				c.check.setAside(h)
				h.Aside, h.Data = append(h.Aside, h.Data), ""
			}
			h.joining = ""
		})
		do("role", func() { h.Role, h.leftover = "standby", false })
	}
	for _, s := range steps {
		if err := s(); err != nil {
			return err
		}
	}
	c.Logf("%s on %s for term %d", o.Verb, h.Name, o.Term)
	return nil
}

// restart ends the process, which is started again and takes a while to answer.
func (c *Cluster) restart(h *Host, o control.Order) {
	c.check.restarted(h, o)
	h.Running, h.Frozen, h.runs = false, false, ""
	c.elect() // a leader has ended, however soon it is back
	h.portAt, h.regradedAt = c.Now.Add(h.Late), c.Now
	c.start(h)
}

// short reports whether it is short of memory.
func (h *Host) short() bool { return h.Pressed > 1 || h.Pressed > 0 && h.runs != fitness.EtcdOnly }

// leavesAfter is how long an endpoint needs to lead its clients off a voter whose
// removal is asked for. That of h2 hangs and never does.
const leavesAfter = 2 * time.Second

// endpoint is where a host leads clients of etcd: to its own voter, else to the
// leader, and off one that is to go. Hosts with an even number have one.
func (c *Cluster) endpoint(h *Host) *fitness.EndpointFacts {
	if (h.Name[len(h.Name)-1]-'0')%2 != 0 {
		return nil
	}
	e := &fitness.EndpointFacts{Reads: c.Leader, Clients: 1}
	for _, m := range c.Voters() {
		if m.Host == h.Name {
			e.Reads = m.ID
		}
	}
	for host, r := range c.Removals {
		if r.Member == e.Reads && h.Name != "h2" && c.Now.Sub(c.asked[host]) >= leavesAfter {
			e.Reads = ""
		}
	}
	if e.Reads != "" {
		e.On = []string{e.Reads}
	}
	return e
}

// facts is what its agent tells.
func (h *Host) facts() fitness.Facts {
	grade := h.settings
	if h.Running && h.runs != h.settings {
		grade = ""
	}
	return fitness.Facts{Link: fitness.Link{Class: fitness.Wired}, MemoryTotal: 8 << 30, DiskFree: 100 << 30, Disk: "ext4",
		Server: &fitness.ServerFacts{Role: h.Role, Fenced: h.Fenced, Running: h.Running, Starts: h.starts, Datastore: h.Data != "", Term: h.Seen, Snapshots: h.Snapshots,
			Grade: grade, Stepped: h.stepped}}
}
