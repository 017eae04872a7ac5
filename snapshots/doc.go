// Package snapshots saves copies of the datastore, proves that they are whole,
// and makes datastores of them again.
//
//	Save      from one named voter into a directory
//	Copy      from a datastore that no process has open
//	Verify    read a file to its end: hash, size, revision, keys, as a database
//	List      what is in a directory
//	Prune     what Keep says may go
//	Schedule  when: Next is a function of the time that is passed in
//	Keeper    saves at those times
//	Restore   a new data directory with a raised revision
//	Drill     start a scratch etcd from a snapshot and compare
//
// It holds to this:
//
//   - A snapshot comes from the voter that was named. Status on the same
//     connection must give that member's ID, and no learner, or nothing is saved.
//   - A file has a snapshot's name only after it was written, synced and
//     verified. Until then it is NAME.partial; whatever kills the save, a
//     partial file is all that it leaves, and the next Save or List removes it.
//   - One process saves or prunes in a directory at a time, by a lock on the
//     directory that the kernel drops with the process.
//   - There is no file beside the snapshot. What verifying needs is in the file
//     (etcd appends the SHA-256 to its stream; revision and keys are in the
//     database), host and time are in its name, and a second file could be lost,
//     or say something else. The member's and the cluster's ID, which are in
//     neither, are in Saved: they belong into the record of the operation.
//   - Files are 0600 and directories 0700: a snapshot holds every secret of the
//     cluster, in clear text unless the API server encrypts them.
//   - Nothing is overwritten, and Restore makes directories only.
//
// Bounds: 1 h and twice the database's size (plus 64 MiB) for one save, 30 s
// without a byte, 10,000 files in a directory, 10 min for a drill. Verifying
// reads the file three times and holds the names of all live keys in memory.
//
// Weakness: a database that was damaged in the member, before etcd took its
// hash, may end the process that reads it (bbolt maps the file). The drill
// therefore reads it in a process of its own.
package snapshots
