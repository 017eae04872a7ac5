package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

func TestStatusSaysWhatIsNotKnown(t *testing.T) {
	at := time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	s := Status{At: at, Voters: 3, Target: 3, Hosts: []HostStatus{{
		Host: "h3", Role: "voter", Error: "agent: pull report of host h3: connection refused",
		Verdict: fitness.Verdict{Host: "h3", Status: fitness.Unfit, Since: at, Reasons: []fitness.Reason{
			{Signal: fitness.RTT, Peer: "h1", Band: fitness.Over, Figure: fitness.Inf, Limit: 0.1, Count: 100}}},
	}}}
	print := func() string {
		var b bytes.Buffer
		s.print(&b)
		return b.String()
	}
	if got := print(); !strings.Contains(got, "unmanaged") {
		t.Errorf("a host that nobody marked is unmanaged:\n%s", got)
	}
	s.Decision.Refusals = []membership.Refusal{{Code: membership.MembershipUnknown}}
	got := print()
	if strings.Contains(got, "unmanaged") || !strings.Contains(got, "not known") {
		t.Errorf("marks that could not be read are not known:\n%s", got)
	}
	if strings.Contains(got, "voters of") || !strings.Contains(got, "voters not known, target 3") {
		t.Errorf("nobody counted the voters:\n%s", got)
	}
	if got := (membership.View{Error: "no quorum"}).Role("h3"); got != "unknown" {
		t.Errorf("without a member list h3 is %s", got)
	}
	if got := (membership.View{}).Role("h3"); got != "standby" {
		t.Errorf("h3, which is in no member list, is %s", got)
	}
	// Others measured the way to it: that it is unfit has a reason, and so has that
	// its agent is silent.
	for _, want := range []string{"unfit: rtt to h1", "its agent does not answer: agent: pull report of host h3"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

// A command looks once. What it has not watched it gives no age, and what the
// controller has watched keeps its own.
func TestNoAgeOfWhatNobodyWatched(t *testing.T) {
	now := time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	say := func(since time.Time) string {
		var b bytes.Buffer
		headline(&b, membership.Decision{Kind: membership.Refused, At: now, Since: since,
			Refusals: []membership.Refusal{{Code: membership.VoterNotResponding, Subject: "h3", Kind: membership.Hold, Since: since}}}, now)
		return b.String()
	}
	if got := say(now); strings.Contains(got, "since") {
		t.Errorf("nobody knows since when:\n%s", got)
	}
	if got := say(now.Add(-2 * time.Minute)); strings.Count(got, "since 2 min ago") != 2 {
		t.Errorf("both are two minutes old:\n%s", got)
	}
}

// While an operation is open, "nothing would be done" is the one thing that is
// not so.
func TestStatusSaysWhatIsUnderWay(t *testing.T) {
	now := time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	d := membership.Decision{Kind: membership.StepNext, At: now, Since: now,
		Step:      &membership.Act{Verb: membership.StartMember, Step: "join", Host: "h5", Why: "its etcd has to run to catch up"},
		Operation: &membership.Operation{ID: "o1", Out: "h3", In: "h5", Begun: now.Add(-2 * time.Minute)}}
	for _, test := range []struct{ turned, want string }{
		{"", "swap h3 → h5 (operation o1, begun 2 min ago) goes on: "},
		{"h5 did not catch up", "turns back: "},
		{"h5 did not catch up", "because h5 did not catch up"},
	} {
		d.Operation.TurnedBack = test.turned
		var b bytes.Buffer
		headline(&b, d, now)
		if got := b.String(); !strings.Contains(got, test.want) || strings.Contains(got, "nothing would be done") {
			t.Errorf("want %q in:\n%s", test.want, got)
		}
	}
}
