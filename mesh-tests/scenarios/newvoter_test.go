package scenarios

import (
	"testing"

	"suffrage/membership"
)

// It turns slow once it votes, and before the old voter is removed.
func TestNewVoterTurnsBad(t *testing.T) {
	turnsBad(t, func(op membership.Operation) bool { return !op.SoakedSince.IsZero() && op.Asked.IsZero() })
}
