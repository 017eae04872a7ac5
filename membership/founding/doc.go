// Package founding makes clusters, and is the only thing that does: `suffrage
// cluster create` makes the first one, `suffrage cluster reset` one in place of a
// cluster that is lost.
//
//   - Two clusters can never come from one. Before anything is made this host's
//     files are read and every other host of the roster is asked: its agent what
//     it has, and its etcd ports whether anything answers. Whatever is found of a
//     cluster is a refusal, with a code; nothing was changed then.
//   - A host that does not answer is named, and its name is in the text that a
//     person has to type. It is never taken for one that has nothing.
//   - A cluster's ID and its record are on the disk before its datastore. A
//     command that died goes on with the same ID when it is given again, and
//     until then no member starts on that host.
//   - Nothing is started: a member is started by its unit, and finds a datastore
//     or does not start.
//   - What is moved is kept. Only what this package half built is removed.
//
// What is refused is a function of what was seen: refuse.go imports no file, no
// network and no clock.
//
// A weakness: a host that is cut off from this one and runs cannot be told from
// one that is dead. That is what the typed text is for.
//
// Words:
//
//	First      the host of initial_cluster that comes first by name: it chooses
//	           the token from which the IDs are made, the others take it from there
//	Sight      what was seen of all hosts
//	Founding   a cluster's member being made on a host (package host)
package founding
