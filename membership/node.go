package membership

import (
	"fmt"
	"time"
)

// Node is what Kubernetes says of a host, on the Node of its name.
type Node struct {
	// Ready is its condition Ready, nil where it has none yet.
	Ready *Condition `json:"ready,omitempty"`
	// EtcdIsVoter is what K3s says of the host's member, nil where K3s runs no etcd.
	// It can be five minutes old: it is recorded, and the member list is believed.
	EtcdIsVoter *Condition `json:"etcd_is_voter,omitempty"`
}

// Condition is one of a Node's.
type Condition struct {
	// Status is True, False or Unknown: nobody has heard of the Node for a while.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Since is since when Status is what it is, by Kubernetes' clock.
	Since time.Time `json:"since,omitzero"`
}

// Is reports whether the condition is met.
func (c Condition) Is() bool { return c.Status == "True" }

// String is "False (KubeletNotReady) since 2026-07-01T12:00:00Z".
func (c Condition) String() string {
	text := c.Status
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	if !c.Since.IsZero() {
		text += " since " + stamp(c.Since)
	}
	return text
}

// notReady says that a host's Node is not Ready, nil where it is or nobody says. Of a
// candidate it is reason enough to take another; of a voter it is no reason to move
// its vote: a kubelet that fails leaves etcd as it was.
func (h *Host) notReady() *Refusal {
	if h == nil || h.Node == nil || h.Node.Ready == nil || h.Node.Ready.Is() {
		return nil
	}
	r := hold(HostNotReady, h.Name, fmt.Sprintf("Ready of its Node is %s", h.Node.Ready), "lifts when it is True: kubectl describe node "+h.Name)
	return &r
}
