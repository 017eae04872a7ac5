package fitness

import "strings"

// ReportVersion is the version of the Report that this build writes and reads.
const ReportVersion = 1

// Report is what one agent tells: facts and series, nothing judged. Times in it
// are by the clock of the host that made it; whoever takes it in shifts them by
// the difference between Now and his own clock, so that no two clocks are ever
// compared.
type Report struct {
	Version int `json:"version"`
	// Host is the name that the agent believes it has; the key it was fetched
	// with is what proves it.
	Host string `json:"host"`
	// Instance is new each time the agent starts; a change means that sequence
	// numbers begin again.
	Instance string `json:"instance"`
	// Software is the version of suffrage that the agent runs.
	Software string `json:"software"`
	// Now is the agent's clock when the report was made, microseconds since 1970.
	Now int64 `json:"now"`
	// Period is the time between two samples of a signal.
	Period Duration `json:"period"`
	Facts  Facts    `json:"facts"`
	// Series holds the samples with a sequence number above the one asked for.
	Series []Series `json:"series"`
	// Last is the highest sequence number so far.
	Last uint64 `json:"last"`
}

// Facts are what an agent found out about its host that is not a series.
type Facts struct {
	Zone string `json:"zone,omitempty"`
	Link Link   `json:"link"`
	// Paths tells, per peer, how an overlay network carries the traffic.
	Paths []Path `json:"paths,omitempty"`
	// OverlayNote says why there are no paths, when there are none.
	OverlayNote string `json:"overlay_note,omitempty"`
	// OverlayExpires is when the host's key of the overlay network ends, and the
	// host is gone from it; microseconds since 1970, 0 for never.
	OverlayExpires int64 `json:"overlay_expires,omitempty"`
	// MemoryTotal is what the host may use, in bytes: the machine's, or the
	// control group's limit where that is lower.
	MemoryTotal int64 `json:"memory_total"`
	// DiskFree is the free space of the datastore's filesystem, in bytes.
	DiskFree int64 `json:"disk_free"`
	// Disk is the filesystem that the disk probes wrote to, such as "ext4 on /dev/vda".
	Disk   string        `json:"disk,omitempty"`
	Member *MemberFacts  `json:"member,omitempty"`
	Probes []ProbeStatus `json:"probes"`
	// Server is the state of this host's etcd server as its agent runs it; nil
	// where the agent does not.
	Server *ServerFacts `json:"server,omitempty"`
	// Prepared is whether the host could be made a voter as it is now, as far as only
	// the host itself can see that; nil where its agent does not look.
	Prepared *Preparation `json:"prepared,omitempty"`
	// K3s is the version of K3s that a start of this host's server would run, such as
	// v1.34.2+k3s1; empty where there is none, or it is not known.
	K3s string `json:"k3s,omitempty"`
	// ScheduledSnapshot is when this host saves its next snapshot by its own
	// schedule; nil where it has none.
	ScheduledSnapshot *ScheduledSnapshot `json:"scheduled_snapshot,omitempty"`
	// Endpoint is where this host's datastore endpoint leads; nil where it has none.
	Endpoint *EndpointFacts `json:"endpoint,omitempty"`
}

// Preparation is what a host found when it looked at its own units, certificates
// and ports.
type Preparation struct {
	Ready bool `json:"ready"`
	// Lacks are what is amiss, none where it is ready.
	Lacks []string `json:"lacks,omitempty"`
}

// EndpointFacts are where a host leads its clients of etcd.
type EndpointFacts struct {
	// Reads and Writes are the IDs of the members that such requests go to, empty
	// where no voter is well as seen from there.
	Reads  string `json:"reads,omitempty"`
	Writes string `json:"writes,omitempty"`
	// On are all members that requests go to or are still under way at.
	On []string `json:"on,omitempty"`
	// Clients counts the connections of clients.
	Clients int `json:"clients"`
	// Error is why it does not listen, or leads nowhere.
	Error string `json:"error,omitempty"`
}

// ScheduledSnapshot is the next one of a host's schedule, its own wait and tries
// after a failure counted in.
type ScheduledSnapshot struct {
	// Next is when it begins, or began, microseconds since 1970.
	Next int64 `json:"next"`
	// Running: it is being saved.
	Running bool `json:"running,omitempty"`
}

// ServerFacts are what an agent knows of the etcd server that it starts, stops
// and fences.
type ServerFacts struct {
	// Role is what the host's role file says: voter or standby.
	Role string `json:"role"`
	// Fenced: a start is impossible, and one that was tried was refused.
	Fenced bool `json:"fenced"`
	// Running: the process is there.
	Running bool `json:"running"`
	// Starts counts the starts since the fence.
	Starts int `json:"starts"`
	// Datastore: there is one where the server would look for it.
	Datastore bool `json:"datastore"`
	// Term is the highest one seen, kept on disk.
	Term uint64 `json:"term"`
	// Snapshots are those that were saved for operations, verified.
	Snapshots []SnapshotFacts `json:"snapshots,omitempty"`
	// Grade is how much of a K3s server runs here, or would at its next start; empty
	// where that is not known, such as while its settings have changed and its process
	// has not, and where a member of Suffrage runs, which is etcd alone.
	Grade Grade `json:"grade,omitempty"`
	// Stepped: it is etcd-only by what Suffrage wrote, and not by settings of its owner.
	Stepped bool `json:"stepped,omitempty"`
}

// Grade is how much of a server a host runs.
type Grade string

const (
	Full Grade = "full"
	// EtcdOnly: it keeps its vote and runs no API server.
	EtcdOnly Grade = "etcd-only"
)

// SnapshotFacts are a verified snapshot on a host.
type SnapshotFacts struct {
	Operation string `json:"operation"`
	File      string `json:"file"`
	Revision  int64  `json:"revision"`
	Size      int64  `json:"size"`
	Hash      string `json:"hash"`
}

// LinkClass is the kind of device that carries the mesh route. It only ranks.
type LinkClass string

const (
	Wired       LinkClass = "wired"
	Wifi        LinkClass = "wifi"
	Cellular    LinkClass = "cellular"
	Virtual     LinkClass = "virtual"
	UnknownLink LinkClass = "unknown"
)

// Link is the device that carries the mesh route.
type Link struct {
	Class  LinkClass `json:"class"`
	Device string    `json:"device,omitempty"`
	// Since is when this class was first seen, microseconds since 1970: a
	// laptop is wired at work and wireless at home.
	Since int64  `json:"since,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Path is how an overlay network reaches one peer.
type Path struct {
	Peer string `json:"peer"`
	// Kind is "direct" or "relayed".
	Kind string `json:"kind"`
	// Via is the peer's own address, or the relay's name.
	Via string `json:"via,omitempty"`
	// Since is when the agent first saw this kind, microseconds since 1970.
	Since int64 `json:"since,omitempty"`
	// Before is the kind that it saw until then, empty for none.
	Before string `json:"before,omitempty"`
}

// String says it without its peer and since when: "relayed through lab1, direct
// before".
func (p Path) String() string {
	text, how := p.Kind, " at "
	switch {
	case p.Kind == "relayed":
		how = " through "
	case strings.HasPrefix(p.Via, "peer relay"):
		how = " by "
	}
	if p.Via != "" {
		text += how + p.Via
	}
	if p.Before != "" {
		text += ", " + p.Before + " before"
	}
	return text
}

// MemberFacts are what the agent knows of the etcd member on its host.
type MemberFacts struct {
	// Started is when the member's process began, microseconds since 1970.
	Started int64 `json:"started"`
	// ElectionTimeout is the running member's own, zero when it does not tell.
	ElectionTimeout Duration `json:"election_timeout,omitempty"`
	// Note says why something above is missing.
	Note string `json:"note,omitempty"`
}

// ProbeStatus tells whether a probe works. A broken probe is a fact of its own.
type ProbeStatus struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Error is what the last failed run said, while the probe still fails.
	Error string `json:"error,omitempty"`
	// Seconds is how long the last run took.
	Seconds float64 `json:"seconds"`
}
