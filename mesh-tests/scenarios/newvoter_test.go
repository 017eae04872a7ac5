package scenarios

import (
	"testing"

	"suffrage/fitness"
)

// It turns slow once it votes, and before the old voter is removed. The soak is
// long enough for a window of samples after the start of its etcd: with a shorter
// one nobody would know yet.
func TestNewVoterTurnsBad(t *testing.T) {
	p := five
	p.Soak = fitness.Duration(4 * window)
	begin(t, p).turnsBad(fourVote, slow, func() error { return nil })
}
