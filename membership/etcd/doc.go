// Package etcd is the etcd API as the rest of Suffrage sees it.
//
//	Observer  one consistent observation of the members, each on fresh
//	          connections with a timeout of its own
//	Marks     what the owner says of hosts, under /suffrage/hosts/
//	Record    the membership as Suffrage knew it, under /suffrage/membership
//	Lead      the election of the one controller, under /suffrage/controller/
//	Changer   changes the membership: done, rejected or unknown, never anything else
//	Requester asks for removals by annotation, under /suffrage/hosts/
//	Remover   acts on them, or says why not
//	Policy    what the owner says of the fleet, under /suffrage/policy
//	Request   the one change that the owner asks for, under /suffrage/request
//	Journal   the operation under way, in the Lease's record
//	History   the operations that ended, under /suffrage/operations/
//	Explain   what a failed call means and what to do next
//
// It holds to this:
//
//   - One member that hangs never makes another one look bad: connections are
//     never shared and never reused between two observations.
//   - The member list that counts was read through a quorum, from a voter. A
//     list that a member merely has in its own store is shown, never used.
//   - Answering Status proves nothing. A voter responds when a request that has
//     to pass through a quorum was served through it, on that fresh connection.
//   - A change is sent only after such a look at every voter, to the leader, and
//     an answer that is not known to be a refusal is unknown.
//   - What is written for an operation is written only while the Lease is held:
//     its record is compared in the same transaction.
//   - An observation changes no key and no revision. With ReadOnly it does not
//     even append to etcd's log.
//   - Replies are bounded: 4 MiB each (gRPC's own limit), 64 members, 2000 marks.
package etcd
