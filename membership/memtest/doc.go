// Package memtest is a model cluster that behaves like etcd on hosts, and a
// seeded simulator that drives membership.Decide and control.Operator over it,
// in virtual time, in one goroutine.
//
// What the model takes from etcd: every change and every linearizable read needs a leader and a
// quorum; the strict check before a change is blind to a frozen or vanished
// peer; a learner is promoted from 90 % of the leader's log on, frozen or not;
// one learner at most; an ID depends on the second and is dead for ever once
// removed; a removed process exits when it hears of it; a removed leader costs
// an election; a call may be done without an answer, or be answered with an
// error and be done seconds later.
//
// What it takes from hosts: everything on disk survives, everything else does
// not, and the power may go between any two writes.
//
// What it leaves out: the contents of the datastore, versions and certificates
// (the guards for those have their own tables), and messages between members.
//
// Every change in the model is checked against the invariants at once
// (check.go); a violation panics with its text and the simulator prints the
// seed and the trace.
package memtest
