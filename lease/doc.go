// Package lease is the one shared lock on role changes. Whoever holds it may
// change who votes; nobody else may.
//
//	Lease    one record in a store that all hosts reach
//	Term     its fencing number: grows with every change of holder, never falls
//	Holder   who has it: a host, and one process on it
//	Record   what is stored: holder, Term, duration, renewals, since, purpose,
//	         and the journal of the operation under way
//	Store    reads the record, and replaces it if nobody else did in between
//	Run      waits for the Lease, takes it, renews it and calls lead meanwhile
//	Held     what lead gets: Check before each change, Write for the journal
//
// It holds to this:
//
//   - Clocks of two hosts are never compared. A contender may take a held Lease
//     once it has itself seen the record unchanged for the whole duration. The
//     times in a record are for people.
//   - The holder stops earlier than that, counted from when it sent its last
//     good renewal: see [Config.Stop].
//   - A process that slept or was frozen finds out by Check, which reads the
//     record again and compares three clocks, and changes nothing.
//   - Anybody else's write to the record, its deletion included, ends the
//     holder's Lease. So does a restart: a Lease belongs to one process.
//   - A write whose outcome is unknown is followed by a read. It is sent again
//     only where that read shows the version it was sent against, so that of
//     all the times it was sent one can succeed.
//   - The journal is in the record: whoever takes the Lease has it in the same
//     act. A take-over and a release keep it.
//
// Between Check and the arrival of the change that follows it there is always
// some time, and a process may be frozen in it. So every change carries the
// Term, and who receives it refuses a lower one than it has seen. etcd's
// membership calls cannot do that; for them the operation's own guards remain.
package lease
