package scenarios

import "testing"

// It turns slow once it votes, and before the old voter is removed.
func TestNewVoterTurnsBad(t *testing.T) {
	begin(t, five).turnsBad(fourVote, slow, func() error { return nil })
}
