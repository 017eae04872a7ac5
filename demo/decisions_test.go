package demo

import (
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

func refused(rs ...membership.Refusal) membership.Decision {
	return membership.Decision{Kind: membership.Refused, Refusals: rs}
}

func refusal(code membership.Code, subject string) membership.Refusal {
	return membership.Refusal{Code: code, Subject: subject, Detail: "it is so"}
}

func planned(out, in string) membership.Decision {
	return membership.Decision{Kind: membership.Planned, Plan: &membership.Plan{Out: out, In: in, Why: "it is slow"}}
}

func TestWhatCountsAsADecision(t *testing.T) {
	for _, tc := range []struct {
		d    membership.Decision
		want bool
		why  string
	}{
		{membership.Decision{Kind: membership.Steady}, false, "nothing is decided"},
		{planned("h3", "h4"), true, "a plan"},
		{refused(refusal(membership.SamplesMissing, "h1"), refusal(membership.NotHeld, "h3")), false, "only the windows"},
		{refused(refusal(membership.SamplesMissing, "h1"), refusal(membership.NoCandidate, "h3")), true, "one of them is not about windows"},
	} {
		if got := counts(tc.d); got != tc.want {
			t.Errorf("%s: %v, want %v: %s", line(tc.d), got, tc.want, tc.why)
		}
	}
}

func TestHeld(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	steps := []struct {
		d    membership.Decision
		tick int // 0: the controller made no new round
		now  int // seconds
		want int
		why  string
	}{
		{planned("h3", "h4"), 1, 0, 0, "first seen"},
		{planned("h3", "h4"), 2, 3, 3, "the same"},
		{planned("h3", "h5"), 3, 4, 0, "another host in"},
		{refused(refusal(membership.NotHeld, "h3")), 4, 5, 0, "another kind"},
		{refused(refusal(membership.NotHeld, "h2")), 5, 6, 0, "another subject"},
		{refused(refusal(membership.NotHeld, "h2")), 6, 9, 3, "the same"},
		{refused(refusal(membership.NotHeld, "h2")), 6, 13, 7, "no new round for a while"},
		{refused(refusal(membership.NotHeld, "h2")), 6, 15, 0, "no new round for too long: nobody confirms it"},
	}
	var h held
	for i, s := range steps {
		s.d.At = start.Add(time.Duration(s.tick) * time.Millisecond)
		if got := h.see(s.d, start.Add(time.Duration(s.now)*time.Second)); got != time.Duration(s.want)*time.Second {
			t.Errorf("step %d: held for %v, want %ds: %s", i, got, s.want, s.why)
		}
	}
}

func TestAllFitNeedsTheStandbysToo(t *testing.T) {
	d := membership.Decision{Kind: membership.Steady}
	for _, h := range hosts(1, "") {
		d.Verdicts = append(d.Verdicts, fitness.Verdict{Host: h.Name, Status: fitness.Fit})
	}
	if !allFit(d) {
		t.Error("five fit hosts and nothing to do is all fit")
	}
	d.Verdicts[4].Status = fitness.StatusUnknown
	if allFit(d) {
		t.Error("a standby of which nothing is known is not fit")
	}
}
