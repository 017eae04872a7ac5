// Package observe looks at any etcd cluster, 3.5 to 3.7, from outside: no agent,
// nothing installed, nothing written. It is what `suffrage observe` prints.
//
// It reads: the member list (through a quorum and as each member has it),
// Status, a key that need not exist, and the metrics pages. It makes no call
// that enters etcd's log. So it does not list alarms with etcd's Alarm call,
// which is a proposal like any write, but takes them from Status.
//
// What it cannot see is said, never guessed: a figure that a histogram's bucket
// does not decide, a metrics page that is not exposed, a field that etcd 3.5
// does not have, an election timeout that nobody told.
package observe
