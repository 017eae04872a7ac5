package fitness

import "time"

// Limits are the owner's limits and the cluster's own timing.
type Limits struct {
	// ElectionTimeout is etcd's, as the running cluster has it. A voter's pair
	// is in violation above a tenth of it, a candidate is fit up to a
	// twentieth. etcd's default is 1 s; K3s runs 5 s.
	ElectionTimeout Duration `json:"election_timeout" yaml:"election_timeout"`
	// WALFsync is the p99 from which a disk's fsync is too slow. etcd's
	// guidance is 10 ms.
	WALFsync Duration `json:"wal_fsync" yaml:"wal_fsync"`
	// BackendCommit is the p99 from which a database commit is too slow. etcd's
	// guidance is 25 ms.
	BackendCommit Duration `json:"backend_commit" yaml:"backend_commit"`
	// StorageQuota is the memory that must stay available, in bytes: etcd maps
	// its database, so as much as the database may grow to. etcd's default is 2 GiB.
	StorageQuota int64 `json:"storage_quota" yaml:"storage_quota"`
	// MemoryUsedMax is the share of memory, 0 to 1, above which a host counts
	// as pressed.
	MemoryUsedMax float64 `json:"memory_used_max" yaml:"memory_used_max"`
}

// DefaultLimits are etcd's guidance with etcd's default timing.
func DefaultLimits() Limits {
	return Limits{
		ElectionTimeout: Duration(time.Second),
		WALFsync:        Duration(10 * time.Millisecond),
		BackendCommit:   Duration(25 * time.Millisecond),
		StorageQuota:    2 << 30,
		MemoryUsedMax:   0.90,
	}
}

// Limit is what one series is judged by.
type Limit struct {
	// Voter is the figure past which a voter is in violation.
	Voter Figure `json:"voter"`
	// Candidate is the figure up to which a candidate is fit. Between the two
	// lies the hysteresis.
	Candidate Figure `json:"candidate"`
}

// For gives the limit of a signal on a host that may use memoryTotal bytes.
func (l Limits) For(s Signal, memoryTotal int64) Limit {
	same := func(v float64) Limit { return Limit{Voter: Figure(v), Candidate: Figure(v)} }
	switch s {
	case RTT:
		// Divided as whole nanoseconds: as float64, 1.1 s / 20 is above 55 ms.
		e := l.ElectionTimeout
		return Limit{Voter: Figure((e / 10).Seconds()), Candidate: Figure((e / 20).Seconds())}
	case WALFsync:
		return same(l.WALFsync.Seconds())
	case BackendCommit:
		return same(l.BackendCommit.Seconds())
	case Memory:
		return same(max(float64(l.StorageQuota), (1-l.MemoryUsedMax)*float64(memoryTotal)))
	case Clock:
		return same(ClockWarning)
	}
	return same(0)
}

// ClockWarning is the offset of two clocks, in seconds, above which a report
// warns. Clocks never gate.
const ClockWarning = 0.5

// Band is where a figure lies.
type Band string

const (
	// Unknown is the zero value: too few, too old or failed samples.
	Unknown Band = ""
	// Under is good enough for a candidate.
	Under Band = "under"
	// Between is good enough to keep a vote, not to get one.
	Between Band = "between"
	// Over is in violation.
	Over Band = "over"
)

func (b Band) String() string {
	if b == Unknown {
		return "unknown"
	}
	return string(b)
}

// MarshalText writes "unknown" for the zero value.
func (b Band) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText accepts the four bands only.
func (b *Band) UnmarshalText(t []byte) error {
	switch v := Band(t); v {
	case Under, Between, Over:
		*b = v
	case "unknown", Unknown:
		*b = Unknown
	default:
		return &BadValue{"band", string(t), "unknown, under, between or over"}
	}
	return nil
}

// outliers is how many samples of a window may be worse than the figure that the
// signal is judged by. It is one for a p99, none where any single sample counts,
// and half of the window for a median.
func (s Signal) outliers() int {
	switch s {
	case Memory, Stability:
		return 0
	case Clock:
		return WindowSize / 2
	}
	return 1
}

// figure is the number of a full window that the signal is judged by.
func (s Signal) figure(w *Window) Figure {
	if s == Memory {
		return w.Min()
	}
	return w.rank(WindowSize - s.outliers())
}

// band judges a figure, and with it a sample: the higher of two figures (the
// lower, of memory) never has the better band. The edges are fixed here and nowhere else: a round trip
// of exactly the limit passes ("above the limit" fails), a disk at exactly the
// limit fails ("from 10 ms" fails), memory at exactly the floor passes.
func (s Signal) band(f Figure, l Limit) Band {
	switch s {
	case WALFsync, BackendCommit:
		if f >= l.Voter {
			return Over
		}
		return Under
	case Memory:
		if f < l.Voter {
			return Over
		}
		return Under
	}
	switch {
	case f > l.Voter:
		return Over
	case f > l.Candidate:
		return Between
	}
	return Under
}

// decide lets etcd's histogram speak where it can: Hi at or below the limit
// passes, Lo at or above it fails, and between the two it cannot say. Its
// buckets are 1 ms·2^n, so there is no edge at 10 or 25 ms, and interpolating
// would make a verdict out of a guess. With fewer than a window of
// observations it cannot say either.
func (b Bound) decide(l Limit) (Band, bool) {
	switch {
	case b.N < WindowSize:
		return Unknown, false
	case b.Hi <= l.Candidate:
		return Under, true
	case b.Lo >= l.Voter:
		return Over, true
	}
	return Unknown, false
}

// edge is the one that decided for a band.
func (b Bound) edge(band Band) Figure {
	if band == Over {
		return b.Lo
	}
	return b.Hi
}
