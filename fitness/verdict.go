package fitness

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status is what a verdict says. The zero value is unknown, and unknown is
// never fit.
type Status string

const (
	StatusUnknown Status = "" // written "unknown"
	Fit           Status = "fit"
	Marginal      Status = "marginal"
	Unfit         Status = "unfit"
)

func (s Status) String() string {
	if s == StatusUnknown {
		return "unknown"
	}
	return string(s)
}

// MarshalText writes "unknown" for the zero value.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts the four statuses only.
func (s *Status) UnmarshalText(t []byte) error {
	switch v := Status(t); v {
	case Fit, Marginal, Unfit:
		*s = v
	case "unknown", StatusUnknown:
		*s = StatusUnknown
	default:
		return &BadValue{"status", string(t), "unknown, fit, marginal or unfit"}
	}
	return nil
}

// Verdict is the judgement on one host, with its reasons.
type Verdict struct {
	Host   string `json:"host"`
	Status Status `json:"status"`
	// Whole is true when the status has held for a whole window: for Unfit, one
	// and the same reading has; for Fit, every reading has. Nothing waits for
	// the other two to hold, and they never do.
	Whole bool `json:"whole"`
	// Held is for how many evaluations in a row it has held, 0 to Whole; 0 when
	// marginal or unknown.
	Held int `json:"held"`
	// Since is when the status began, as far as the samples reach back.
	Since time.Time `json:"since"`
	// Reasons are the readings that make the status, worst first; none when fit.
	Reasons []Reason `json:"reasons,omitempty"`
}

// Judge makes the verdict on a host from its own readings and those of its
// pairs, each with the other end as Peer, in any order. Readings of signals that
// never gate are left out, and nothing to judge by is unknown. It cannot know
// which readings should be there: the caller adds an unknown one for each that
// is missing.
func Judge(host string, readings []Reading) Verdict {
	v := Verdict{Host: host}
	worst, under, over, judged := Under, Whole, 0, false
	for i := range readings {
		r := &readings[i]
		if !r.Signal.Gates() {
			continue
		}
		judged = true
		if r.Band != Under {
			if v.Reasons == nil {
				v.Reasons = make([]Reason, 0, len(readings)-i)
			}
			v.Reasons = append(v.Reasons, reason(*r))
		}
		if severity(r.Band) > severity(worst) {
			worst = r.Band
		}
		under = min(under, r.Held)
		if r.Band == Over {
			over = max(over, r.Held)
		}
	}
	switch {
	case !judged || worst == Unknown:
	case worst == Over:
		v.Status, v.Held = Unfit, over
	case worst == Between:
		v.Status = Marginal
	default:
		v.Status, v.Held = Fit, under
	}
	v.Whole = v.Held >= Whole
	v.Since = since(v.Status, readings)
	slices.SortFunc(v.Reasons, compareReasons)
	return v
}

// since is when the status began: the latest start among the readings that
// must all hold for it, the earliest among those of which one is enough.
func since(s Status, readings []Reading) time.Time {
	var t time.Time
	for i := range readings {
		r := &readings[i]
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
		return v.Status.String()
	}
	parts := make([]string, 0, 3)
	for i, r := range v.Reasons {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(v.Reasons)-3))
			break
		}
		parts = append(parts, r.String())
	}
	return v.Status.String() + ": " + strings.Join(parts, "; ")
}
