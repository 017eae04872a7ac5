package kube

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
)

// The pages name every annotation and every reason of an Event.
func TestPages(t *testing.T) {
	for page, names := range map[string][]string{
		"kubernetes.md": append(Reported(), Reasons()...), "annotations.md": append(Reported(), Eligible, Pinned),
	} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/%s does not have %s", page, name)
			}
		}
	}
	for _, reason := range Reasons() {
		if actions[reason] == "" {
			t.Errorf("%s has no action, which an Event needs", reason)
		}
	}
}

func view(hosts, voters int) (v membership.View) {
	for i := range hosts {
		h := fmt.Sprintf("h%d", i+1)
		v.Hosts = append(v.Hosts, membership.Host{Name: h})
		if i < voters {
			v.Members = append(v.Members, membership.Member{ID: h, Host: h, Responding: true, Leader: "h1"})
		}
	}
	return v
}

func TestSayOf(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	op := membership.Operation{ID: "op-1", Out: "h3", In: "h4", Steps: []membership.StepRecord{{Name: "soak", Begun: now}}}
	quorumLost := view(4, 3)
	quorumLost.Error = "no quorum"
	learner := view(4, 4)
	learner.Members[3].Learner = true
	for _, c := range []struct {
		why  string
		view membership.View
		d    membership.Decision
		node string
		want string // role, decision, operation
	}{
		{"a voter knows of the decision", view(4, 3), membership.Decision{Kind: membership.Steady}, "h2", "voter|steady|"},
		{"a standby that it does not name does not", view(4, 3), membership.Decision{Kind: membership.Steady}, "h4", "standby||"},
		{"a refusal names it", view(4, 3), membership.Decision{Kind: membership.Refused, Refusals: []membership.Refusal{{Code: "pair-unreachable", Subject: "h1,h4"}, {Code: "paused"}}},
			"h4", "standby|refused: pair-unreachable(h1,h4) paused|"},
		{"a voter is one also while marks cannot be read", quorumLost, membership.Decision{Kind: membership.Steady}, "h2", "voter|steady|"},
		{"nobody is a standby then", quorumLost, membership.Decision{Kind: membership.Steady}, "h4", "||"},
		{"with no member known all hosts know", view(4, 0), membership.Decision{Kind: membership.Refused, Refusals: []membership.Refusal{{Code: "no-leader"}}}, "h4", "standby|refused: no-leader|"},
		{"a learner", learner, membership.Decision{Kind: membership.StepNext, Operation: &op, Step: &membership.Act{}}, "h4",
			"learner|swap h3 → h4 is under way|swap h3 → h4: soak since 2026-07-01T12:00:00Z (op-1)"},
		{"a step that waits for something says for what", view(4, 3),
			membership.Decision{Kind: membership.StepNext, Operation: &op, Step: &membership.Act{Verb: membership.Wait, Host: "h4"}, Refusals: []membership.Refusal{{Code: "no-leader"}}},
			"h1", "leader|step wait(h4) no-leader|"},
		{"a host that is not in the roster has nothing", view(4, 3), membership.Decision{}, "h9", "||"},
	} {
		s := sayOf(membership.Inputs{Now: now, View: c.view}, c.d)[c.node]
		if got := s.text[Role] + "|" + s.text[Decision] + "|" + s.text[Operation]; got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
	}
}

// A fleet in which everything swings for a day fills neither memory nor etcd, with
// the API server away for all of it.
func TestFloodIsBounded(t *testing.T) {
	const hosts = 50
	w := NewWriter(nil, "h1", slog.New(slog.DiscardHandler))
	begun := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for round := range 24 * 60 {
		in := membership.Inputs{Now: begun.Add(time.Duration(round) * time.Minute), View: view(hosts, 7)}
		d := membership.Decision{Kind: membership.Refused, At: in.Now, Since: in.Now, Refusals: []membership.Refusal{
			{Code: membership.Code(fmt.Sprint("code-", round)), Detail: strings.Repeat("é", 3000), Since: begun}}}
		w.Offer(in, d)
	}
	if len(w.waiting) > maxWaiting || len(w.limits) > hosts || w.lost == 0 {
		t.Errorf("%d Events wait, %d limits are kept, %d were left out", len(w.waiting), len(w.limits), w.lost)
	}
	for host, s := range w.says {
		for name, text := range s.text {
			if len(text) > maxReason {
				t.Errorf("%s: %s has %d bytes", host, name, len(text))
			}
		}
	}
}
