package membership

import (
	"slices"
	"time"

	"suffrage/fitness"
)

// Outcome is how an operation ended.
type Outcome string

const (
	// Completed: what was planned is so.
	Completed Outcome = "completed"
	// Undone: it turned back, and the voters are those from before.
	Undone Outcome = "undone"
	// Stopped: somebody else changed the membership, and the owner took over.
	Stopped Outcome = "stopped"
)

// Operation is a swap under way, and, once it has an outcome, one that ended.
// While it is open it lives in the Lease's record (the journal); afterwards it
// is history. What has been done is never taken from here but from the View:
// the journal holds who and why, the IDs, and when things began.
type Operation struct {
	ID string `json:"id"`
	// Out loses its vote and In gets one. Growing has no Out, shrinking no In.
	Out string `json:"out,omitempty"`
	In  string `json:"in,omitempty"`
	// OutMember is the ID of the member that is removed; InMember that of the
	// one that was added, empty until it is known.
	OutMember string `json:"out_member,omitempty"`
	InMember  string `json:"in_member,omitempty"`
	// InPeer is the peer URL that In joins with: by it a learner is recognised
	// whose add had no answer.
	InPeer string `json:"in_peer,omitempty"`
	// By is "controller", or the person who asked.
	By      string  `json:"by,omitempty"`
	Why     string  `json:"why,omitempty"`
	Figures []Datum `json:"figures,omitempty"`
	// ClusterID and MembersBefore are of the moment it began; MembersAfter of
	// the moment it ended. IDs, sorted.
	ClusterID     string   `json:"cluster_id,omitempty"`
	MembersBefore []string `json:"members_before,omitempty"`
	MembersAfter  []string `json:"members_after,omitempty"`
	// WorstBefore and WorstAfter are the worst p99 round trips among the voters.
	WorstBefore *fitness.Figure `json:"worst_before,omitempty"`
	WorstAfter  *fitness.Figure `json:"worst_after,omitempty"`
	Begun       time.Time       `json:"begun,omitzero"`
	Ended       time.Time       `json:"ended,omitzero"`
	Outcome     Outcome         `json:"outcome,omitempty"`
	// TurnedBack says why it goes back; empty while it goes forward.
	TurnedBack string `json:"turned_back,omitempty"`
	// Steps are those that were begun, in order.
	Steps []StepRecord `json:"steps,omitempty"`
	// Snapshot is the verified copy that was made for it.
	Snapshot *SnapshotRef `json:"snapshot,omitempty"`
	// SoakedSince is since when all voters, the newcomer among them, have been
	// well without a break.
	SoakedSince time.Time `json:"soaked_since,omitzero"`
}

// StepRecord is one step that was begun.
type StepRecord struct {
	Name  string    `json:"name"`
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended,omitzero"`
	// Note is what held it up last.
	Note string `json:"note,omitempty"`
}

// SnapshotRef names a saved copy of the datastore.
type SnapshotRef struct {
	Host     string `json:"host"`
	File     string `json:"file"`
	Revision int64  `json:"revision"`
	Size     int64  `json:"size"`
	Hash     string `json:"hash"`
}

// Open reports whether the operation is under way.
func (o Operation) Open() bool { return o.Outcome == "" }

// Failed reports whether it ended without doing what was planned.
func (o Operation) Failed() bool { return o.Outcome == Undone || o.Outcome == Stopped }

// clone is a copy that shares nothing that changes.
func (o Operation) clone() *Operation {
	o.Steps = slices.Clone(o.Steps)
	return &o
}

// at notes that a step is under way, and ends the one before.
func (o *Operation) at(name string, now time.Time) *StepRecord {
	if n := len(o.Steps); n > 0 {
		if o.Steps[n-1].Name == name {
			return &o.Steps[n-1]
		}
		o.Steps[n-1].Ended = now
	}
	o.Steps = append(o.Steps, StepRecord{Name: name, Begun: now})
	return &o.Steps[len(o.Steps)-1]
}

// began is when a step was begun, zero when it was not.
func (o Operation) began(name string) time.Time {
	for _, s := range o.Steps {
		if s.Name == name {
			return s.Begun
		}
	}
	return time.Time{}
}
