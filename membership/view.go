package membership

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
)

// View is one consistent observation of the cluster and its hosts. Slices are
// sorted (members by ID, hosts by name) and keyed by ID or name, never matched
// by position.
type View struct {
	At time.Time `json:"at"`
	// ClusterID and member IDs are lower-case hexadecimal, as etcdctl prints them.
	ClusterID string `json:"cluster_id"`
	// RecordedClusterID is the one that Suffrage knew before. A restore from a
	// snapshot makes a new cluster, and what was recorded of the old one is void.
	RecordedClusterID string `json:"recorded_cluster_id,omitempty"`
	// Error says why the member list could not be read through a quorum. Nothing
	// is ever decided on a list that was not.
	Error   string   `json:"error,omitempty"`
	Members []Member `json:"members"`
	Alarms  []Alarm  `json:"alarms,omitempty"`
	// Downgrade is the target version while an etcd downgrade is open.
	Downgrade string `json:"downgrade,omitempty"`
	// MembershipSince is since when the set of voters is what it is, as far as
	// anybody saw it. Samples from before it do not count.
	MembershipSince time.Time `json:"membership_since"`
	// MembershipChanged is the last change that was seen; zero when none was.
	MembershipChanged time.Time `json:"membership_changed,omitzero"`
	Hosts             []Host    `json:"hosts"`
	// Removals are those that are asked for by annotation.
	Removals []Removal `json:"removals,omitempty"`
	// Foreign are signs that another controller of membership is at work.
	Foreign []Foreign `json:"foreign,omitempty"`
}

// Foreign is what another controller that adds and removes members left on a
// host's Node.
type Foreign struct {
	Host string `json:"host"`
	// Who is its name; Sign is what was seen, such as "annotation a/b is C".
	Who  string `json:"who"`
	Sign string `json:"sign"`
}

// Removal is an annotation on a host that asks for the removal of its member.
type Removal struct {
	Host      string    `json:"host"`
	Member    string    `json:"member"`
	Operation string    `json:"operation"`
	At        time.Time `json:"at"`
	// Held: it is announced, and not to be acted on yet.
	Held bool `json:"held,omitempty"`
	// Refused is why whoever acts on it would not.
	Refused string `json:"refused,omitempty"`
}

// Member is one etcd member as the cluster lists it and as it answers itself,
// on a fresh connection of its own.
type Member struct {
	ID         string   `json:"id"`
	Name       string   `json:"name,omitempty"`
	Host       string   `json:"host,omitempty"` // empty when no host has its peer address
	PeerURLs   []string `json:"peer_urls,omitempty"`
	ClientURLs []string `json:"client_urls,omitempty"`
	Learner    bool     `json:"learner,omitempty"`
	// Responding is true when it answered Status and served a request that has
	// to pass through a quorum, on a connection made for that. Status alone
	// never proves quorum: an isolated member keeps naming the old leader for
	// up to two election timeouts.
	Responding bool `json:"responding"`
	// Error is what went wrong when it does not respond.
	Error string `json:"error,omitempty"`
	// Since is since when Responding has been what it is.
	Since time.Time `json:"since,omitzero"`
	// What Status said.
	Leader       string   `json:"leader,omitempty"`
	RaftTerm     uint64   `json:"raft_term,omitempty"`
	RaftIndex    uint64   `json:"raft_index,omitempty"`
	AppliedIndex uint64   `json:"applied_index,omitempty"`
	Version      string   `json:"version,omitempty"`
	DBSize       int64    `json:"db_size,omitempty"`
	DBInUse      int64    `json:"db_in_use,omitempty"`
	Quota        int64    `json:"quota,omitempty"`
	StatusErrors []string `json:"status_errors,omitempty"`
	// Opinion is the member list as this member has it: IDs, sorted, learners
	// with a trailing "?".
	Opinion []string `json:"opinion,omitempty"`
}

// Started reports whether the member has ever published itself. One that has
// not counts as a voter for quorum, never as healthy.
func (m Member) Started() bool { return m.Name != "" || len(m.ClientURLs) > 0 }

// Label is how the member is called in texts: its host, else its name, else its ID.
func (m Member) Label() string {
	switch {
	case m.Host != "":
		return m.Host
	case m.Name != "":
		return m.Name
	}
	return m.ID
}

// Alarm is one alarm that etcd holds. The member named in it may be the wrong
// one for CORRUPT, so nobody is ever chosen by it.
type Alarm struct {
	Member string `json:"member"`
	Kind   string `json:"kind"`
}

// Host is a machine of the fleet.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Mark    Mark   `json:"mark"`
	// Reachable is true when its agent answered in this round with the right key.
	Reachable bool   `json:"reachable"`
	Error     string `json:"error,omitempty"`
	// Since is since when Reachable has been what it is.
	Since    time.Time     `json:"since,omitzero"`
	Software string        `json:"software,omitempty"`
	Facts    fitness.Facts `json:"facts"`
	// Node is what its Node in Kubernetes says, nil where there is none.
	Node *Node `json:"node,omitempty"`
}

// Grade is how much of a server the host runs, empty where its agent does not tell.
func (h Host) Grade() fitness.Grade {
	if s := h.Facts.Server; s != nil && h.Reachable {
		return s.Grade
	}
	return ""
}

// Mark is what the owner says of a host.
type Mark struct {
	// Eligible: true may be given a vote; false may not; absent: the owner said
	// nothing, and a voter like that is unmanaged.
	Eligible *Say `json:"eligible,omitempty"`
	// Pinned: true may never lose its vote automatically.
	Pinned *Say `json:"pinned,omitempty"`
	// Cleared: the owner forgave the host the swaps that failed before.
	Cleared *Say `json:"cleared,omitempty"`
}

// Say is one statement of the owner, with who, when and why.
type Say struct {
	Value  bool      `json:"value"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// And is what two places say of one host, where the cautious word goes first:
// pinned where one says so, not eligible where one says that. Else m goes before o.
func (m Mark) And(o Mark) Mark {
	if m.Eligible == nil || o.Eligible != nil && m.Eligible.Value && !o.Eligible.Value {
		m.Eligible = o.Eligible
	}
	if m.Pinned == nil || o.Pinned != nil && o.Pinned.Value && !m.Pinned.Value {
		m.Pinned = o.Pinned
	}
	if m.Cleared == nil {
		m.Cleared = o.Cleared
	}
	return m
}

// IsEligible reports whether the owner allows the host a vote.
func (m Mark) IsEligible() bool { return m.Eligible != nil && m.Eligible.Value }

// IsPinned reports whether the owner forbids taking its vote.
func (m Mark) IsPinned() bool { return m.Pinned != nil && m.Pinned.Value }

// IsManaged reports whether the owner said anything of the host.
func (m Mark) IsManaged() bool { return m.Eligible != nil || m.IsPinned() }

// Word is the mark in one word: pinned, eligible, ineligible or unmanaged.
func (m Mark) Word() string {
	switch {
	case m.IsPinned():
		return "pinned"
	case m.IsEligible():
		return "eligible"
	case m.Eligible != nil:
		return "ineligible"
	}
	return "unmanaged"
}

// Voters are the members that vote, sorted by ID. They are to be read only: where
// every member votes, as nearly always, it is the view's own list.
func (v View) Voters() []Member {
	byID := func(a, b Member) int { return cmp.Compare(a.ID, b.ID) }
	learner := func(m Member) bool { return m.Learner }
	if !slices.ContainsFunc(v.Members, learner) && slices.IsSortedFunc(v.Members, byID) {
		return slices.Clip(v.Members)
	}
	out := make([]Member, 0, len(v.Members))
	for _, m := range v.Members {
		if !m.Learner {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, byID)
	return out
}

// unusable says why nothing may be decided from the view, or nothing: the
// membership could not be read, or what was read contradicts itself.
func (v View) unusable() string {
	if v.Error != "" {
		return "the membership could not be read: " + v.Error
	}
	members, hosts := map[string]bool{}, map[string]bool{}
	for _, m := range v.Members {
		if members[m.ID] {
			return fmt.Sprintf("the view contradicts itself: member %s is in it twice", m.ID)
		}
		members[m.ID] = true
	}
	for _, h := range v.Hosts {
		if hosts[h.Name] {
			return fmt.Sprintf("the view contradicts itself: host %s is in it twice", h.Name)
		}
		hosts[h.Name] = true
	}
	return ""
}

// Leader is the ID that the responding voters name, or empty when they do not
// all name the same one.
func (v View) Leader() string {
	leader := ""
	for _, m := range v.Voters() {
		switch {
		case !m.Responding:
		case m.Leader == "" || (leader != "" && m.Leader != leader):
			return ""
		default:
			leader = m.Leader
		}
	}
	return leader
}

// HostNamed finds a host; ok is false when the roster has none of that name.
func (v View) HostNamed(name string) (h Host, ok bool) {
	for _, h := range v.Hosts {
		if h.Name == name {
			return h, true
		}
	}
	return Host{}, false
}

// UnknownRole is that of a host while the member list cannot be read: nobody is a
// standby for want of one.
const UnknownRole = "unknown"

// Role is what a host is to etcd: leader, voter, learner, standby or unknown.
func (v View) Role(host string) string {
	leader := v.Leader()
	for _, m := range v.Members {
		switch {
		case m.Host != host:
			continue
		case m.Learner:
			return "learner"
		case m.ID == leader:
			return "leader"
		}
		return "voter"
	}
	if v.Error != "" {
		return UnknownRole
	}
	return "standby"
}
