package observe

import (
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// ReportVersion is the version of the JSON form. Fields are added, never renamed.
const ReportVersion = 1

// Report is what a run found. Durations of a signal are in seconds, sizes in bytes.
type Report struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	// For is how long was measured.
	For       fitness.Duration `json:"for"`
	ClusterID string           `json:"cluster_id"`
	// Error says why the member list could not be read through a quorum; Members
	// are then what one member has in its own store.
	Error   string   `json:"error,omitempty"`
	Members []Member `json:"members"`
	// ElectionTimeout is the cluster's, and ElectionTimeoutFrom says how it is
	// known: "read", "given" or "assumed".
	ElectionTimeout     fitness.Duration `json:"election_timeout"`
	ElectionTimeoutFrom string           `json:"election_timeout_from"`
	// Downgrade is the target of an open downgrade; null where no member tells
	// (etcd 3.5), empty where none is open.
	Downgrade *string            `json:"downgrade"`
	Alarms    []membership.Alarm `json:"alarms"`
	// LeaderChanges is by how much the Raft term grew during the run.
	LeaderChanges uint64 `json:"leader_changes"`
	// Refusals are the guards that would refuse a swap right now.
	Refusals []membership.Refusal `json:"refusals"`
	// Troubles are what could not be reached or read, each with what to do.
	Troubles []etcd.Trouble `json:"troubles"`
}

// Member is one member of the list.
type Member struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Role is "voter", "learner" or "unstarted"; Leader is true for one voter.
	Role   string `json:"role"`
	Leader bool   `json:"leader"`
	// URL is where it answered.
	URL        string `json:"url,omitempty"`
	Responding bool   `json:"responding"`
	Error      string `json:"error,omitempty"`
	Version    string `json:"version,omitempty"`
	DBSize     int64  `json:"db_size"`
	DBInUse    int64  `json:"db_in_use"`
	// Quota is 0 where the member does not tell (etcd 3.5).
	Quota int64 `json:"quota"`
	// Lag is how many entries it is behind the newest member, null if unknown.
	Lag *uint64 `json:"lag"`
	// List is its opinion of the member list: "same", "differs", or "not told"
	// (learners do not serve it). Opinion is the list where it differs.
	List    string   `json:"list"`
	Opinion []string `json:"opinion,omitempty"`
	// RoundTrip is a read from the member's own store, from where observe runs,
	// on a connection that is kept open.
	RoundTrip RoundTrip `json:"round_trip"`
	// Metrics is the page that the disk figures are from.
	Metrics       string `json:"metrics,omitempty"`
	WALFsync      Disk   `json:"wal_fsync"`
	BackendCommit Disk   `json:"backend_commit"`
}

// Label is the member in few words.
func (m Member) Label() string {
	if m.Name != "" {
		return m.Name
	}
	return m.ID
}

// RoundTrip are round trips in seconds; p99 is null below 100 samples. A lost
// one counts as longer than every other: "inf".
type RoundTrip struct {
	P50   *fitness.Figure `json:"p50"`
	P99   *fitness.Figure `json:"p99"`
	Count int             `json:"count"`
	Lost  int             `json:"lost"`
}

// Words of Disk.Says.
const (
	Passes    = "passes"
	Fails     = "fails"
	CannotSay = "cannot say"
	TooFew    = "too few"
	NoMetrics = "no metrics"
)

// Disk is a p99 as etcd's own histogram has it over the run: Lo < p99 <= Hi.
// The buckets double, so a limit inside one cannot be judged from outside.
type Disk struct {
	Lo    fitness.Figure `json:"lo"`
	Hi    fitness.Figure `json:"hi"`
	Count uint64         `json:"count"`
	Limit fitness.Figure `json:"limit"`
	Says  string         `json:"says"`
}
