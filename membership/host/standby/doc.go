// Package standby readies this host to hold a vote one day, says what it lacks,
// and takes away again what it laid down.
//
// The contract:
//
//   - Check changes nothing and asks nobody but this host: its files, its systemd
//     and its own agent. What could not be told is unknown, and unknown is not
//     ready.
//   - Prepare does what can be done with what is here: no network, no package, no
//     key and no certificate. It starts nothing. The fence comes first, so that
//     nothing that it lays down can start a server.
//   - Given again it changes no file.
//   - Before each change the manifest says what was there. It is root's, in a
//     directory that is root's: what removes by it does so as root.
//   - Remove puts back what the manifest says, and leaves what was changed since.
//     A datastore, and whatever else came into the data directory, is moved aside.
//     A host that is a member of the cluster is refused, and so is one of which
//     that cannot be told. From before that look to its end no order starts a
//     member here; nor while Prepare looks whether a fence is wanted and puts it up.
//
// Words:
//
//	Check    one thing that a standby needs, and what was found
//	Shipped  a file that this program carries and Prepare lays down
//	Change   one thing that Prepare did to this host
//	Manifest all changes, with what was there before
package standby
