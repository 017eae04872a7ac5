package fitness

import (
	"cmp"
	"fmt"
	"time"
)

// Reason is one reading that keeps a host from being fit.
type Reason struct {
	Signal Signal    `json:"signal"`
	Peer   string    `json:"peer,omitempty"`
	Band   Band      `json:"band"`
	Figure Figure    `json:"figure"`
	Limit  Figure    `json:"limit"`
	Count  int       `json:"count"`
	Held   int       `json:"held"`
	Since  time.Time `json:"since"`
	Note   string    `json:"note,omitempty"`
}

// String is the one rendering of a reason, for people, logs and tests.
func (r Reason) String() string {
	what := string(r.Signal)
	if r.Peer != "" {
		what += " to " + r.Peer
	}
	u := r.Signal.Unit()
	switch {
	case r.Band == Unknown:
		return fmt.Sprintf("%s unknown (%s)", what, r.Note)
	case r.Signal == Memory:
		return fmt.Sprintf("%s %s available, needs %s", what, r.Figure.Text(u), r.Limit.Text(u))
	case r.Signal == Stability:
		return fmt.Sprintf("%s: %s restarts in one sample, limit %s", what, r.Figure.Text(u), r.Limit.Text(u))
	}
	return fmt.Sprintf("%s p99 %s, limit %s", what, r.Figure.Text(u), r.Limit.Text(u))
}

// severity orders bands: a violation is a fact even where something else is
// unknown, and what is unknown weighs more than what is merely middling.
func severity(b Band) int {
	switch b {
	case Over:
		return 3
	case Unknown:
		return 2
	case Between:
		return 1
	}
	return 0
}

func reason(r Reading) Reason {
	limit := r.Limit.Candidate
	if r.Band == Over {
		limit = r.Limit.Voter
	}
	return Reason{Signal: r.Signal, Peer: r.Peer, Band: r.Band, Figure: r.Figure, Limit: limit,
		Count: r.Count, Held: r.Held, Since: r.Since, Note: r.Note}
}

func compareReasons(a, b Reason) int {
	return cmp.Or(
		cmp.Compare(severity(b.Band), severity(a.Band)),
		cmp.Compare(a.Signal, b.Signal),
		cmp.Compare(b.Figure, a.Figure),
		cmp.Compare(a.Peer, b.Peer),
	)
}
