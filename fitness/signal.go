package fitness

// Signal names what is measured. The names are also metric labels and stand in
// recorded inputs, so they never change.
type Signal string

const (
	// RTT is the round trip of a ping frame between two agents, in seconds.
	RTT Signal = "rtt"
	// WALFsync is the time of a WAL-like append and fdatasync, in seconds.
	WALFsync Signal = "wal_fsync"
	// BackendCommit is the time of a small bbolt commit, in seconds.
	BackendCommit Signal = "backend_commit"
	// Memory is the memory that is available on the host, in bytes.
	Memory Signal = "memory"
	// Stability counts restarts of the member and reboots since the sample before.
	Stability Signal = "stability"
	// Clock is the offset of the peer's clock, in seconds. It never gates.
	Clock Signal = "clock"
)

// HostSignals are the gating signals that a host has by itself, in the order in
// which reports show them.
var HostSignals = [...]Signal{WALFsync, BackendCommit, Memory, Stability}

// Gates reports whether the signal can make a host unfit. Signals that this
// version does not know never do.
func (s Signal) Gates() bool { return s == RTT || s == Memory || s == Stability || s.ofDisk() }

// ofDisk reports whether etcd has a histogram of the signal too.
func (s Signal) ofDisk() bool { return s == WALFsync || s == BackendCommit }

// times reports whether the signal's figure is how long the measurement took.
func (s Signal) times() bool { return s == RTT || s.ofDisk() }

// OfPair reports whether the signal belongs to an ordered pair of hosts.
func (s Signal) OfPair() bool { return s == RTT || s == Clock }

// Unit is the unit of the signal's figures: "s", "B" or "1" (a count).
func (s Signal) Unit() string {
	switch s {
	case Memory:
		return "B"
	case Stability:
		return "1"
	default:
		return "s"
	}
}
