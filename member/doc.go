// Package member runs one etcd server: a member of the cluster whose votes
// Suffrage moves. It is etcd's own server library, unchanged, in a process of
// its own, so that restarting an agent or a controller never touches etcd.
//
//   - A start never makes a cluster: an empty data directory is refused, unless
//     the cluster to join is told, and it lists this member. Create makes a
//     datastore and starts nothing. A flag that makes clusters and stays in a
//     unit file is how one cluster becomes two.
//   - What a person got wrong is said before etcd starts, naming the file or
//     address and what to do. What belongs to etcd (a datastore of another
//     cluster, a member that was removed) is etcd's own answer, as an error.
//   - The metrics page also tells the election timeout and the heartbeat, which
//     etcd itself does not export: limits are derived from them.
package member
