package page

import (
	"context"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Look is what a controller knows at one moment. It is not changed any more.
type Look struct {
	Inputs   membership.Inputs
	Decision membership.Decision
	// Leads: it is the newest round of this controller, which leads. Else it stands
	// by, and looked by itself.
	Leads bool
	// Controller is the host whose controller leads, and Since when it began; Note
	// says why that is not known.
	Controller string
	Since      time.Time
	Note       string
	// Series gives copies of what the host's agent told; nil where there is nothing.
	Series func(host string) []fitness.Series
}

// Source gives the newest look. It may take seconds where the fleet has to be
// looked at first; the context bounds it. Errors say what would help.
type Source interface {
	Look(ctx context.Context) (Look, error)
}
