package membership

import (
	"fmt"
	"time"

	"suffrage/fitness"
)

// Code names a reason not to act. Codes are stable: people grep for them,
// alerts and docs/refusals.md are keyed by them.
type Code string

// Kind says who lifts a refusal.
type RefusalKind string

const (
	// Hold lifts by itself.
	Hold RefusalKind = "hold"
	// Owner waits for a person; Next is the exact next command.
	Owner RefusalKind = "owner"
	// Reject is a command or a step that was refused before any effect.
	Reject RefusalKind = "reject"
)

// Refusal is a reason not to act. The same inputs give byte-equal texts.
type Refusal struct {
	Code Code        `json:"code"`
	Kind RefusalKind `json:"kind"`
	// Subject is the host, or the pair or hosts as "a,b", or the member's ID, or
	// the kind of alarm, or empty for the cluster.
	Subject string `json:"subject,omitempty"`
	Detail  string `json:"detail"`
	// Figures are what it rests on.
	Figures []Datum `json:"figures,omitempty"`
	// Since is since when this code has held for this subject.
	Since time.Time `json:"since"`
	// Next is what lifts it: a command where a person must act.
	Next string `json:"next"`
}

// Datum is one figure of a refusal or a plan.
type Datum struct {
	Name  string          `json:"name"`
	Value fitness.Figure  `json:"value"`
	Limit *fitness.Figure `json:"limit,omitempty"`
	Unit  string          `json:"unit"`
	Peer  string          `json:"peer,omitempty"`
	Count int             `json:"count,omitempty"`
	Since time.Time       `json:"since,omitzero"`
}

// String is "code(subject): detail".
func (r Refusal) String() string {
	if r.Subject == "" {
		return fmt.Sprintf("%s: %s", r.Code, r.Detail)
	}
	return fmt.Sprintf("%s(%s): %s", r.Code, r.Subject, r.Detail)
}
