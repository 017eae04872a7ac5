package memtest

import (
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// k3s is what K3s does by itself, of the k3s flavour (pkg/etcd in K3s's source):
// a server without a datastore adds itself as a learner until it is let in; beside
// the leader a loop promotes a learner that has caught up, and removes one that
// makes no progress; a removed server that is started again joins as another
// member. Nobody's guards are asked, and nobody's Term.
type k3s struct {
	looked   time.Time
	progress uint64
	learner  string
	moved    time.Time
}

// asK3s makes it a fleet of K3s's servers, all of them full, whose controllers
// regrade by themselves.
func (s *Sim) asK3s() {
	s.k3s, s.Policy.Flavour, s.Policy.RegradeHeadroom = &k3s{}, membership.K3s, 1<<30
	for _, h := range s.Hosts {
		h.settings, h.runs = fitness.Full, fitness.Full
	}
}

// stepsDown makes a voter one that was stepped down by the controller so long ago.
func (s *Sim) stepsDown(h *Host, ago time.Duration) {
	h.settings, h.runs, h.stepped = fitness.EtcdOnly, fitness.EtcdOnly, true
	op := membership.Operation{ID: "before", Regrade: h.Name, To: fitness.EtcdOnly, Member: h.Data, By: membership.ByController,
		Outcome: membership.Completed, Begun: s.Now.Add(-ago), Ended: s.Now.Add(-ago)}
	s.History[op.ID] = op
}

// loop is the caller's name in what K3s does beside the leader.
const loop = "K3s"

const (
	loopTime = 15 * time.Second
	// giveUpTime is K3s's five minutes, shorter so that it comes before Suffrage
	// gives up as well as after.
	giveUpTime = 70 * time.Second
)

func (k *k3s) step(c *Cluster) {
	if k == nil || !c.Serves() {
		return
	}
	for _, h := range c.Hosts {
		if h.Up && h.Running && h.Data == "" && !h.Gone && !h.Frozen && !h.Stuck {
			k.join(c, h)
		}
	}
	if c.Now.Sub(k.looked) < loopTime {
		return
	}
	k.looked = c.Now
	for _, m := range c.Members {
		if m.Learner {
			k.tend(c, m)
			return
		}
	}
}

// join is what a server does that has no datastore.
func (k *k3s) join(c *Cluster, h *Host) {
	if c.add(Peer(h.Name), k.by(c, h)) != nil {
		return
	}
	for _, m := range c.Members {
		if m.Host == h.Name {
			h.Data = m.ID
			h.stores++
		}
	}
	if h.told != nil && c.History[h.told.Op].Outcome == membership.Undone {
		c.check.fail("%s joins by itself, and operation %s, which started it, is undone", h.Name, h.told.Op)
	}
}

// by is the caller: all that it could know is what the controller saw that told
// the host to start. A server that no open operation told is somebody else's.
func (k *k3s) by(c *Cluster, h *Host) *Caller {
	if op := c.Lease.Open; h.told == nil || op == nil || op.ID != h.told.Op {
		return &Caller{Name: loop, Weak: true, Foreign: true, ViewAt: c.soon()}
	}
	return &Caller{Name: loop, Weak: true, ViewAt: h.told.ViewAt, Op: h.told.Op, Blind: h.told.Blind}
}

func (k *k3s) tend(c *Cluster, m *Member) {
	by := k.by(c, c.Host(m.Host))
	if c.promote(m.ID, by) == nil {
		return
	}
	if k.learner != m.ID || m.Index > k.progress {
		k.learner, k.progress, k.moved = m.ID, m.Index, c.Now
	}
	if c.Now.Sub(k.moved) > giveUpTime {
		_ = c.remove(m.ID, by)
	}
}
