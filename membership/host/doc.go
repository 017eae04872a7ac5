// Package host acts on the etcd server of this host: it carries out the orders
// that a controller gives through the host's agent. The verbs are a closed list
// with typed arguments; there is no shell, no path and no command in an order.
//
// The contract:
//
//   - Every order carries the Term of the Lease and its operation. An order with
//     a lower Term than the highest seen is refused, also after a reboot.
//   - Every verb can be repeated and may die between any two system calls: given
//     again it ends where it would have ended. Files are replaced whole, and are
//     on the disk before the next thing is done.
//   - A refusal comes before any effect, and has a code.
//   - The fence is the first thing written and the last thing removed. It is
//     honoured by `suffrage member` itself and by whatever starts it, whoever
//     asks; a process that runs already goes on. It counts once a start was
//     tried and refused.
//   - No datastore is deleted: one that is out of use is renamed, with when and
//     whose it was in its name.
//   - A cluster is made here at most once by create, and its record is on the disk
//     before its datastore: until that is complete no member starts.
//   - What runs is asked of the Unit, never remembered.
//
// The files, all under data:
//
//	role.json    what this host is: voter or standby, and as which member
//	fence.json   no start is possible while it exists, whatever is in it
//	term.json    the highest Term seen
//	cluster.json the cluster that was made on this host, and whether it is complete
//	join.json    the members to join, for the next start without a datastore
//	starts.json  how often the member was started
//
// A weakness: the fence lies under data and the datastore where member.data_dir
// says. Where these are two filesystems and only the second is mounted, there is
// no fence to be seen. By default both are under data.
//
// Words:
//
//	Order   one verb with Term and operation, for one host
//	Unit    whatever starts and stops the member: systemd, or the demo
//	Aside   the place of a datastore that is out of use
//	Standing what a host has of any cluster
//	Founding the making of a cluster on this host
package host
