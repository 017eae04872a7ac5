package membership_test

import (
	"testing"

	"suffrage/membership"
)

func TestMarksOfTwoPlaces(t *testing.T) {
	yes, no := &membership.Say{Value: true}, &membership.Say{}
	for _, c := range []struct {
		a, b membership.Mark
		want string
		why  string
	}{
		{membership.Mark{}, membership.Mark{}, "unmanaged", "nobody said anything"},
		{membership.Mark{Eligible: yes}, membership.Mark{}, "eligible", "one place is enough"},
		{membership.Mark{Eligible: yes}, membership.Mark{Eligible: no}, "ineligible", "who forbids goes first"},
		{membership.Mark{Eligible: no}, membership.Mark{}, "ineligible", "silence lifts nothing"},
		{membership.Mark{Eligible: yes, Pinned: no}, membership.Mark{Pinned: yes}, "pinned", "who pins goes first"},
		{membership.Mark{Eligible: yes}, membership.Mark{Pinned: no}, "eligible", "unpinned is no more than that"},
	} {
		if ab, ba := c.a.And(c.b).Word(), c.b.And(c.a).Word(); ab != c.want || ba != c.want {
			t.Errorf("%s: %s and %s, want %s", c.why, ab, ba, c.want)
		}
	}
}
