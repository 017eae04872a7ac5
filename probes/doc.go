// Package probes measures one host, and the way from it to another.
//
// The contract:
//
//   - One file per probe. Each has a half that reads and a half that parses, and
//     the root path is the seam: everything that comes from procfs or sysfs is
//     read below a root ("/" on a real host, a captured tree in tests).
//   - A probe measures or returns an error that names the file, the address or
//     the URL and says what would help. It never returns a zero or a magic
//     number in place of a measurement.
//   - Probes judge nothing and keep no windows: that is fitness. They log
//     nothing: whoever calls them knows whether a failure is new.
//   - Everything read is bounded in size. What can hang for reasons outside this
//     process (a disk, a peer, a daemon) takes a context or a timeout; a disk can
//     be interrupted by nothing, so disk probes block, and the caller gives them
//     a goroutine of their own.
//
// Words:
//
//	Ping       one frame there and back on a connection that is kept open
//	Outcome    what became of one ping: a round trip, or lost
//	Histogram  a cumulative snapshot of one of etcd's own histograms
package probes
