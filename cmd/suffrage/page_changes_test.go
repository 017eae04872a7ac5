package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/page/pagetest"
)

// What a word of the owner changes is decided, not described.
func TestWhatChanges(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	slow, open, calm := pagetest.Fleet{Slow: "h3"}, pagetest.Fleet{Slow: "h3", Open: true}, pagetest.Fleet{}
	say := func(value bool) *membership.Say { return &membership.Say{Value: value, By: "anna", At: now} }
	pinned, ineligible, eligible := membership.Mark{Eligible: say(true), Pinned: say(true)}, membership.Mark{Eligible: say(false)}, membership.Mark{Eligible: say(true)}
	for _, tc := range []struct {
		fleet pagetest.Fleet
		host  string
		from  membership.Mark
		to    membership.Mark
		want  string // empty: nothing changes
		why   string
	}{
		{slow, "h3", eligible, pinned, "No swap h3 → h4 any more. | h3 would no longer be moved. | What holds back then: pinned(h3)", "the voter that would go is pinned"},
		{slow, "h3", pinned, eligible, "Suffrage would swap h3 → h4, because", "and unpinned"},
		{slow, "h4", eligible, ineligible, "No swap h3 → h4 any more. | Suffrage would swap h3 → h5, because", "another candidate takes its place, and h3 goes all the same"},
		{open, "h3", eligible, pinned, "The open swap h3 → h4 turns back, because h3 was pinned.", "an operation under way"},
		{open, "h4", eligible, ineligible, "The open swap h3 → h4 turns back, because h4 is no longer eligible.", "its newcomer"},
		{calm, "h3", eligible, pinned, "", "nothing was to be done with it"},
		{slow, "h5", eligible, pinned, "", "a standby that nobody wants"},
	} {
		in := tc.fleet.Look(now).Inputs
		lines, key := whatChanges(membership.Decide(marked(in, tc.host, tc.from)), membership.Decide(marked(in, tc.host, tc.to)))
		want := tc.want
		if want == "" {
			want = "Nothing changes in what is decided now."
		}
		if got := strings.Join(lines, " | "); !strings.HasPrefix(got, want) || tc.want == "" && got != want {
			t.Errorf("%s of %s:\n got %s\nwant %s", tc.why, tc.host, got, want)
		}
		if key == "" || strings.Contains(key, " ms") {
			t.Errorf("%s: what is sealed has figures, which are others in each round: %q", tc.why, key)
		}
	}

	in := open.Look(now).Inputs
	in.Open.Steps = in.Open.Steps[:1] // nothing was changed yet
	paused := in
	paused.Policy.Paused = say(true)
	if lines, _ := whatChanges(membership.Decide(in), membership.Decide(paused)); !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "The open swap h3 → h4 turns back, because paused") }) {
		t.Errorf("a pause: %q", lines)
	}
}
