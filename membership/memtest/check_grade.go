package memtest

import (
	"slices"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/control"
)

// below: one voter at most is below full.
func (k *checker) below() {
	var low []string
	for _, m := range k.c.Voters() {
		if h := k.c.Host(m.Host); h.settings == fitness.EtcdOnly {
			low = append(low, h.Name)
		}
	}
	if len(low) > 1 && !k.foreign { // or somebody else gave one a vote
		k.fail("%v are etcd-only, more than one", low)
	}
}

// restarted: the one voter of a regrade, and while it is away all others are well.
func (k *checker) restarted(h *Host, o control.Order) {
	c, by, op := k.c, k.giver, k.ops[o.Operation]
	k.mine("restart of "+h.Name, by)
	if op.Regrade != h.Name {
		k.fail("%s is restarted by operation %s, whose it is not", h.Name, op.ID)
	}
	if was, ended := c.History[op.ID]; ended {
		k.fail("%s is restarted by operation %s, which has ended %s", h.Name, op.ID, was.Outcome)
	}
	m := c.Member(h.Data)
	if m == nil || m.Learner || !c.answers(m) {
		return // it is away already, or no voter
	}
	if n := len(c.Voters()); n < 3 && !k.foreign {
		k.fail("%s is restarted, one of %d voters", h.Name, n)
	}
	for _, v := range c.Voters() {
		if v != m && !k.well(v, by) {
			k.fail("%s is restarted while %s is not well", h.Name, v.ID)
		}
	}
	if c.Leader == m.ID && !c.elected.After(by.ViewAt) {
		k.fail("%s is restarted and it leads", h.Name)
	}
	if c.Alarm != "" && !k.alarmAt.After(by.ViewAt) {
		k.fail("%s is restarted under an alarm, which that disarms", h.Name)
	}
}

// graded: an operation ends with the grade that it says, and with the members
// from before.
func (k *checker) graded(op membership.Operation) {
	h := k.c.Host(op.Regrade)
	want := op.To
	switch op.Outcome {
	case membership.Stopped:
		return
	case membership.Undone:
		want = map[fitness.Grade]fitness.Grade{fitness.Full: fitness.EtcdOnly, fitness.EtcdOnly: fitness.Full}[op.To]
	}
	if h.settings != want || h.Running && h.runs != want {
		k.fail("operation %s ends %s and %s is %s, running as %q", op.ID, op.Outcome, h.Name, h.settings, h.runs)
	}
	if !slices.Equal(op.MembersBefore, op.MembersAfter) && !k.foreign {
		k.fail("operation %s ends with members %v, there were %v", op.ID, op.MembersAfter, op.MembersBefore)
	}
}

// restedBefore: by itself a server steps up only hours after the controller stepped
// it down.
func (k *checker) restedBefore(op membership.Operation) bool {
	if op.To == fitness.EtcdOnly {
		return true
	}
	for _, was := range k.c.History {
		if was.Regrade == op.Regrade && was.To == fitness.EtcdOnly && was.By == membership.ByController && was.Outcome == membership.Completed &&
			k.c.Now.Sub(was.Ended) > 6*time.Hour-30*time.Minute { // clocks differ
			return true
		}
	}
	return false
}
