package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// leaveTime is how long the hosts' datastore endpoints have to lead their clients
// off a voter before its removal goes on without them: they look every second and
// give what is under way ten more. A host that hangs must not hold up the removal
// of the voter that everybody waits for.
const leaveTime = 15 * time.Second

// led are the hosts whose endpoints still lead clients to the outgoing member, and
// those of which that is not known since their agents do not answer. Nobody is
// where no host that answers has an endpoint: then there are none.
func (m *motion) led() (hosts []string) {
	some := false
	for _, h := range m.in0().View.Hosts {
		switch e := h.Facts.Endpoint; {
		case !h.Reachable:
			if h.Name != m.op.Out {
				hosts = append(hosts, h.Name)
			}
		case e != nil:
			some = true
			if slices.Contains(e.On, m.op.OutMember) {
				hosts = append(hosts, h.Name)
			}
		}
	}
	if !some {
		return nil
	}
	slices.Sort(hosts)
	return hosts
}

// announced is a removal that is announced: what is left is that clients are led
// off, for as long as there is time.
func (m *motion) announced(step string) *Act {
	led := m.led()
	if took := m.since(m.op.Asked); len(led) > 0 && took < leaveTime {
		return m.wait(step, fmt.Sprintf("clients on %s are being led off %s", strings.Join(led, ", "), m.op.Out))
	}
	why := m.unneeded()
	if len(led) > 0 {
		why += fmt.Sprintf("; not waited for any longer: clients on %s, which are led to it or whose agents do not answer", strings.Join(led, ", "))
		m.op.note(why)
	}
	return m.do(RequestRemoval, step, m.op.Out, m.op.OutMember, why)
}

// unneeded is why the outgoing member goes.
func (m *motion) unneeded() string {
	if m.op.Dead {
		return "it is dead, says " + m.op.By
	}
	return "its vote is no longer needed"
}
