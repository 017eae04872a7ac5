package scenarios

import (
	"testing"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// A pair of voters of which one does not hear the other, and that one leads. The
// other one has no leader then, and says so to whoever asks for more than that it
// is there; the owner, on the third host, is told by name, and no change is made.
func TestPairCutOneWay(t *testing.T) {
	f := begin(t, five)
	leader := f.leader()
	deaf, _ := f.followers()
	f.seat = third(leader, deaf)
	f.fault("nothing comes from the leader to one that follows", f.OneWay(leader, deaf, lab.Link{Cut: true}))
	f.until("it is named, and nothing is planned", func(s lab.Status) bool {
		return s.Decision.Plan == nil && (s.Refuses(membership.VoterNotResponding, deaf) || s.Refuses(membership.VoterDown, deaf) || s.Refuses(membership.PairUnreachable, min(leader, deaf)+","+max(leader, deaf)))
	})
	f.came()
	f.heal()
	f.back(deaf)
}

// third is that of the first three hosts that is neither of these.
func third(a, b string) string {
	for _, host := range []string{"h1", "h2"} {
		if host != a && host != b {
			return host
		}
	}
	return "h3"
}
