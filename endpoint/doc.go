// Package endpoint leads clients on this host to a voter of etcd, wherever the
// votes are: a Kubernetes API server that is told https://127.0.0.1:2379 once is
// never told anything else, and a vote moves without restarting it.
//
// The contract:
//
//   - It leads requests, not connections. A client's connection ends here; each
//     request goes to the voter that is right at that moment. So nothing of a
//     client's has to break when a voter goes: a TCP pass-through would have to
//     cut, and a cut fails the writes that are under way (etcd's client repeats no
//     write that may have been done).
//   - Reads and watches go to one voter: the one on this host, else the leader,
//     and stay there while it is well. Writes go to the leader. One that is sent to
//     a follower while leadership moves may be lost on its way to the leader, and
//     fails after seconds; one that the leader itself will not take is answered at
//     once and for certain, and is sent again from here.
//   - A request is sent again only where it is certain that it was not carried out:
//     no connection stood, or etcd says "raft proposal dropped". Everything else
//     is the client's to judge.
//   - A voter is led to only while a look at it says that a quorum stands behind
//     it. Learners, voters that the cluster does not list any more, that do not
//     answer or have no leader are left. So is one whose removal is asked for, as
//     soon as that is seen: watches end with a code at which etcd's client takes
//     them up again elsewhere without a gap, and all other requests end by
//     themselves, up to Grace.
//   - Where no voter is well, requests fail at once, with the reason.
//   - Clients show the certificate that `suffrage identity datastore` issued on
//     this host, which is worth nothing anywhere else, or one of the fleet's
//     authority. They may do what a datastore's client needs (method.go is the
//     whole list), and write no key under /suffrage/: who votes is not theirs to
//     change.
//   - Connections, streams, sizes and times are bounded. It changes nothing in etcd.
//
// Its weakness is that restarting the agent restarts it: what is under way ends
// first, but until the new one listens, clients are refused. Where systemd holds the
// socket they wait.
//
// Words:
//
//	Look    what is asked of voters every second: members, leader, who leaves
//	Route   where requests are led until the next look
//	Leave   send nothing more to a voter, and let what it has end
package endpoint
