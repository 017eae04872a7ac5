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
// seed, the trace and the command that runs it again.
//
// The invariants, and where each is checked (check.go; cause.go for the owner's
// refusals). mutants_test.go breaks the product in one place each and wants this
// package to find it.
//
//	 1  n, n+1, n voters, within the maximum       always
//	 2  one operation, one learner                 journaled, always
//	 3  no add, no restart unless all are well     added, restarted, below
//	 4  quorum holds after the change              promoted, removing
//	 5  the newcomer is well, level, has soaked    requested, removing
//	 6  no leader is removed, none restarted       requested, removing, restarted
//	 7  a removal counts when the list says so     recorded
//	 8  no removed host comes back                 started, rejoins, always, recorded
//	 9  nothing is deleted                         always, ordered
//	10  a snapshot comes first                     added
//	11  Lease and Term, at every call              sent, Order, held
//	12  unknown is looked at, not repeated         added, recorded, unhealthy
//	13  pins and eligibility                       added, promoted, requested
//	14  dry-run changes nothing                    acts
//	15  nothing is repaired by removing            decided, mine, removing, cause
//	16  no second cluster                          started
//
// A regrade keeps the members and ends with the grade that it says (graded); by
// itself a server steps up hours after it stepped down (restedBefore).
//
// Of 10 the verification, and of 16 the command that creates a
// cluster are no part of the model: they have tests where they are.
package memtest
