package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
)

// Every time in a report's facts is shifted from its host's clock to ours, and
// what is not known stays so.
func TestFactsAreShifted(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	host, hour := at.Add(-2*time.Hour), time.Hour.Microseconds() // its clock is two hours behind
	g := &Gatherer{told: map[string]*told{}}
	g.takeIn(pulled{host: Roster{Name: "h1"}, received: at, report: fitness.Report{Host: "h1", Instance: "i", Now: host.UnixMicro(), Facts: fitness.Facts{
		Paths:          []fitness.Path{{Peer: "h2", Kind: "relayed", Since: host.UnixMicro() - hour, Before: "direct"}, {Peer: "h3", Kind: "direct"}},
		OverlayExpires: host.UnixMicro() + hour,
		Member:         &fitness.MemberFacts{Started: host.UnixMicro() - 3*hour},
	}}})
	now := at.UnixMicro()
	want := fitness.Facts{
		Paths:          []fitness.Path{{Peer: "h2", Kind: "relayed", Since: now - hour, Before: "direct"}, {Peer: "h3", Kind: "direct"}},
		OverlayExpires: now + hour,
		Member:         &fitness.MemberFacts{Started: now - 3*hour},
	}
	if diff := cmp.Diff(want, g.told["h1"].report.Facts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
