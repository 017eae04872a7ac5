package fitness

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// Status is what a verdict says. The zero value is unknown, and unknown is
// never fit.
type Status string

const (
	StatusUnknown Status = "unknown"
	Fit           Status = "fit"
	Marginal      Status = "marginal"
	Unfit         Status = "unfit"
)

// Verdict is the judgement on one host, with its reasons.
type Verdict struct {
	Host   string `json:"host"`
	Status Status `json:"status"`
	// Whole is true when the status has held for a whole window: for Unfit, one
	// and the same reading has; for Fit, every reading has.
	Whole bool `json:"whole"`
	// Held is for how many evaluations in a row it has held, 0 to Whole.
	Held int `json:"held"`
	// Since is when the status began, as far as the samples reach back.
	Since time.Time `json:"since"`
	// Reasons are the readings that make the status, worst first; none when fit.
	Reasons []Reason `json:"reasons,omitempty"`
}

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

// Judge makes the verdict on a voter from its own readings and those of its
// pairs, in any order. Readings of signals that never gate are left out.
func Judge(host string, readings []Reading) Verdict {
	v := Verdict{Host: host, Status: StatusUnknown}
	if len(readings) == 0 {
		return v
	}
	worst, held := Under, Whole
	var over int
	for _, r := range readings {
		if !r.Signal.Gates() {
			continue
		}
		if r.Band != Under {
			v.Reasons = append(v.Reasons, reason(r))
		}
		if severity(r.Band) > severity(worst) {
			worst = r.Band
		}
		held = min(held, r.Held)
		if r.Band == Over {
			over = max(over, r.Held)
		}
	}
	v.Status = map[Band]Status{Under: Fit, Between: Marginal, Over: Unfit, Unknown: StatusUnknown}[worst]
	switch v.Status {
	case Fit:
		v.Held = held
	case Unfit:
		v.Held = over
	}
	v.Whole = v.Held >= Whole
	v.Since = since(v.Status, readings)
	sort.Slice(v.Reasons, func(i, j int) bool { return lessReason(v.Reasons[i], v.Reasons[j]) })
	return v
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

func lessReason(a, b Reason) bool {
	if x, y := severity(a.Band), severity(b.Band); x != y {
		return x > y
	}
	if a.Signal != b.Signal {
		return a.Signal < b.Signal
	}
	if a.Figure != b.Figure {
		return a.Figure > b.Figure
	}
	return a.Peer < b.Peer
}

// since is when the status began: the latest start among the readings that
// must all hold for it, the earliest among those of which one is enough.
func since(s Status, readings []Reading) time.Time {
	var t time.Time
	for _, r := range readings {
		if !r.Signal.Gates() {
			continue
		}
		switch {
		case s == Fit:
			if r.Since.After(t) {
				t = r.Since
			}
		case r.Band == bandOf(s) && (t.IsZero() || r.Since.Before(t)):
			t = r.Since
		}
	}
	return t
}

func bandOf(s Status) Band {
	switch s {
	case Unfit:
		return Over
	case Marginal:
		return Between
	}
	return Unknown
}

// String is the one rendering of a verdict: "unfit: rtt to h1 p99 151 ms, limit 100 ms".
func (v Verdict) String() string {
	if len(v.Reasons) == 0 {
		return string(v.Status)
	}
	parts := make([]string, 0, 3)
	for i, r := range v.Reasons {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(v.Reasons)-3))
			break
		}
		parts = append(parts, r.String())
	}
	return string(v.Status) + ": " + strings.Join(parts, "; ")
}
