package record

import (
	"time"

	"suffrage/mesh-tests/history"
)

// Rules are what has to hold all the time, by which a run is judged.
type Rules struct {
	// Least and Most are how few and how many may vote at any time, until the
	// first of Phases begins.
	Least int `json:"least"`
	Most  int `json:"most"`
	// Phases are what changes that, in order.
	Phases []Phase `json:"phases,omitempty"`
	// Outages are while there is no quorum: a write that was tried at such a time
	// may fail.
	Outages []history.Span `json:"outages,omitempty"`
	// Quiet is until when nothing may be planned or under way, 0 where that may be.
	Quiet time.Duration `json:"quiet,omitempty"`
	// Clusters is how many cluster IDs there may be one after the other: two
	// where the owner restores.
	Clusters int `json:"clusters"`
}

// Phase begins when the owner asks for another number of voters, and when there
// are that many.
type Phase struct {
	From  time.Duration `json:"from"`
	Least int           `json:"least"`
	Most  int           `json:"most"`
}

// voters are how few and how many may vote in a list that was asked for at a time.
func (r Rules) voters(at time.Duration) (least, most int) {
	least, most = r.Least, r.Most
	for _, p := range r.Phases {
		if p.From <= at {
			least, most = p.Least, p.Most
		}
	}
	return least, most
}

// excused reports whether a failed write was tried during an outage.
func (r Rules) excused(failure history.Span) bool {
	for _, o := range r.Outages {
		if o.Meets(failure) {
			return true
		}
	}
	return false
}
