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

// Stop is the owner's word that takes an operation over: it ends where it is,
// with the members and fences as they are then.
type Stop struct {
	Operation string    `json:"operation"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`
	Reason    string    `json:"reason,omitempty"`
}

// Operation is a plan under way, and, once it has an outcome, one that ended.
// While it is open it lives in the Lease's record (the journal); afterwards it
// is history. What has been done is never taken from here but from the View:
// the journal holds who and why, the IDs, and when things began.
type Operation struct {
	ID string `json:"id"`
	// Out loses its vote and In gets one. Growing has no Out, shrinking no In.
	Out string `json:"out,omitempty"`
	In  string `json:"in,omitempty"`
	// Dead: Out is dead, and is removed by the owner's word without a newcomer.
	Dead bool `json:"dead,omitempty"`
	// Regrade is the host whose grade changes, To what it becomes, and Member the ID
	// of the member on it, which stays. There is neither Out nor In then.
	Regrade string        `json:"regrade,omitempty"`
	To      fitness.Grade `json:"to,omitempty"`
	Member  string        `json:"member,omitempty"`
	// OutMember is the ID of the member that is removed; InMember that of the
	// one that was added, empty until it is known.
	OutMember string `json:"out_member,omitempty"`
	InMember  string `json:"in_member,omitempty"`
	// InPeer is the peer URL that In joins with: by it a learner is recognised
	// whose add had no answer.
	InPeer string `json:"in_peer,omitempty"`
	// By is ByController, or the person who asked.
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
	Outcome     Outcome         `json:"outcome,omitempty"`
	Begun       time.Time       `json:"begun,omitzero"`
	Ended       time.Time       `json:"ended,omitzero"`
	// TurnedBack says why it goes back; empty while it goes forward.
	TurnedBack string `json:"turned_back,omitempty"`
	// Steps are those that were begun, in order.
	Steps []StepRecord `json:"steps,omitempty"`
	// Snapshot is the verified copy that was made for it.
	Snapshot *SnapshotRef `json:"snapshot,omitempty"`
	// Unsaved are the hosts that could not save it, the one tried last at the end.
	Unsaved []string `json:"unsaved,omitempty"`
	// SoakedSince is since when all voters, the newcomer among them, have been
	// well without a break.
	SoakedSince time.Time `json:"soaked_since,omitzero"`
	// Asked is since when the outgoing member's removal has been asked for, zero
	// while it is not.
	Asked time.Time `json:"asked,omitzero"`
	// Called is when something was last called for that may come late: a learner,
	// a start, a fence or its lifting, a removal or its withdrawal, a regrade.
	Called time.Time `json:"called,omitzero"`
	// Unfenced is when the lifting of the outgoing host's fence was last ordered:
	// of all that may come late, only this could undo a fence that stands.
	Unfenced time.Time `json:"unfenced,omitzero"`
	// Term is that of the holder who wrote this, Resumed when it took over from
	// another: no wait is measured with two clocks.
	Term    uint64    `json:"term,omitempty"`
	Resumed time.Time `json:"resumed,omitzero"`
}

// ByController: nobody asked; the readings did.
const ByController = "controller"

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

// Title is "swap h3 → h4", "grow by h4", "shrink by h3", "remove dead h3" or
// "regrade h3 to etcd-only".
func (o Operation) Title() string {
	return o.plan().String()
}

// plan is what it carries out, as far as it is named by it.
func (o Operation) plan() *Plan {
	return &Plan{Out: o.Out, In: o.In, Dead: o.Dead, Regrade: o.Regrade, To: o.To}
}

// About are the hosts that it changes.
func (o Operation) About() []string {
	return slices.DeleteFunc([]string{o.Out, o.In, o.Regrade}, func(h string) bool { return h == "" })
}

// Open reports whether the operation is under way.
func (o Operation) Open() bool { return o.Outcome == "" }

// Failed reports whether it ended without doing what was planned.
func (o Operation) Failed() bool { return o.Outcome == Undone || o.Outcome == Stopped }

// clone is a copy that shares nothing that changes.
func (o Operation) clone() *Operation {
	o.Steps, o.Unsaved = slices.Clone(o.Steps), slices.Clone(o.Unsaved)
	return &o
}

// at notes that a step is under way, and ends the others. A step that is come
// back to goes on with its record: there are at most as many as there are steps.
func (o *Operation) at(name string, now time.Time) *StepRecord {
	var r *StepRecord
	for i := range o.Steps {
		switch s := &o.Steps[i]; {
		case s.Name == name:
			s.Ended, r = time.Time{}, s
		case s.Ended.IsZero():
			s.Ended = now
		}
	}
	if r == nil {
		o.Steps = append(o.Steps, StepRecord{Name: name, Begun: now})
		r = &o.Steps[len(o.Steps)-1]
	}
	return r
}

// note says what holds up the step that is under way.
func (o *Operation) note(text string) {
	for i := range o.Steps {
		if o.Steps[i].Ended.IsZero() {
			o.Steps[i].Note = text
		}
	}
}

// noted is what held up the newest step that anything did.
func (o Operation) noted() string {
	for _, s := range slices.Backward(o.Steps) {
		if s.Note != "" {
			return s.Note
		}
	}
	return "see the log of the controller"
}

// began is when a step was begun first, zero when it was not.
func (o Operation) began(name string) time.Time {
	for _, s := range o.Steps {
		if s.Name == name {
			return s.Begun
		}
	}
	return time.Time{}
}
