package record

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/history"
)

// good is a run on which nothing is wrong.
func good() *Recording {
	three, four := []string{"h1", "h2", "h3"}, []string{"h1", "h2", "h3", "h4"}
	return &Recording{
		Rules:   Rules{Least: 3, Most: 4, Clusters: 1},
		History: history.History{{Key: "k", Put: "1", Call: 1, Return: 2}, {Key: "k", Got: "1", Call: 3, Return: 4}},
		Writes:  history.Writes{Acknowledged: 1, Gap: time.Second},
		Members: []Members{{At: 1, Until: 1, Cluster: "a", Voters: three}, {At: 2, Until: 2, Cluster: "a", Voters: three, Learners: []string{"h4"}},
			{At: 3, Until: 3, Cluster: "a", Voters: four}, {At: 4, Until: 9, Cluster: "a", Voters: []string{"h1", "h2", "h4"}}},
		Decisions: []Decision{
			{At: 1, Until: 1, Is: membership.Decision{Kind: membership.Steady}},
			{At: 1, Until: 2, Is: membership.Decision{Kind: membership.Planned, Plan: &membership.Plan{Out: "h3", In: "h4"}}},
			{At: 2, Until: 3, Is: membership.Decision{Kind: membership.StepNext, Operation: &membership.Operation{ID: "1"}}},
		},
		Metrics: []Page{{At: 3, Host: "h1", Service: "agent", Text: "up 1\n"}},
		Operations: []membership.Operation{
			{ID: "1", Out: "h3", OutMember: "3", In: "h4", InMember: "4", Outcome: membership.Completed, MembersBefore: []string{"1", "3"}, MembersAfter: []string{"1", "4"}},
			{ID: "2", Out: "h1", OutMember: "1", In: "h5", Outcome: membership.Undone, TurnedBack: "no-candidate", MembersBefore: []string{"1", "4"}, MembersAfter: []string{"1", "4"}},
		},
	}
}

func TestJudgeSays(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Recording)
		want  string // empty: nothing is wrong
	}{
		{"good", func(*Recording) {}, ""},
		{"nothing was written", func(r *Recording) { r.Writes.Acknowledged = 0 }, "nothing was proven"},
		{"nobody looked", func(r *Recording) { r.Members = nil }, "nothing was proven"},
		{"a write failed", func(r *Recording) { r.Writes.Failed = 1 }, "1 writes failed"},
		{"a write failed without a quorum", func(r *Recording) {
			r.Writes.Failed, r.Writes.Failures = 1, []history.Span{{From: 4, To: 9}}
			r.Rules.Outages = []history.Span{{From: 1, To: 5}}
		}, ""},
		{"a write failed, and the quorum was lost later", func(r *Recording) {
			r.Writes.Failed, r.Writes.Failures = 1, []history.Span{{From: 4, To: 9}}
			r.Rules.Outages = []history.Span{{From: 10, To: 12}}
		}, "1 writes failed"},
		{"one of two failed without a quorum", func(r *Recording) {
			r.Writes.Failed, r.Writes.Failures = 2, []history.Span{{From: 4, To: 9}, {From: 20, To: 30}}
			r.Rules.Outages = []history.Span{{From: 1, To: 5}}
		}, "1 writes failed"},
		{"nothing was read at the end", func(r *Recording) { r.History[1].Unknown = true }, "the last get"},
		{"a write was lost", func(r *Recording) { r.History[1].Got = "" }, "no order"},
		{"a vote was taken before another was given", func(r *Recording) { r.Members[2].Voters = []string{"h1", "h2"} }, "2 voters, allowed: 3 to 4"},
		{"too many votes", func(r *Recording) { r.Members[2].Voters = []string{"h1", "h2", "h3", "h4", "h5"} }, "5 voters"},
		{"two learners", func(r *Recording) { r.Members[1].Learners = []string{"h4", "h5"} }, "2 learners"},
		{"another cluster", func(r *Recording) { r.Members[3].Cluster = "b" }, "2 clusters, allowed: 1"},
		{"another cluster, as the owner wants", func(r *Recording) { r.Members[3].Cluster, r.Rules.Clusters = "b", 2 }, ""},
		{"two clusters by turns", func(r *Recording) { r.Members[1].Cluster, r.Rules.Clusters = "b", 3 }, "two clusters answer"},
		{"a vote is given and one taken at once", func(r *Recording) { r.Members[2].Voters = []string{"h1", "h2", "h4"} }, "two votes changed at once"},
		{"the same, and nobody looked for a while", func(r *Recording) {
			r.Members = append(r.Members[:2], r.Members[3])
			r.Members[2].At = 5 * time.Second
		}, ""},
		{"a vote came from nowhere", func(r *Recording) { r.Operations[0].In, r.Operations[0].InMember = "h5", "4" }, "h4 got a vote, and no operation gave it"},
		{"a vote is lost, and its operation went back", func(r *Recording) {
			r.Operations[0].Outcome, r.Operations[0].TurnedBack, r.Operations[0].MembersAfter = membership.Undone, "x", []string{"1", "3"}
		}, "h3 lost its vote, and no operation took it"},
		{"a vote is lost to an operation that is open", func(r *Recording) { r.Operations, r.Open = r.Operations[1:], &r.Operations[0]; r.Open.Outcome = "" }, ""},
		{"a dip while the owner grows", func(r *Recording) {
			r.Rules = Rules{Least: 1, Most: 2, Clusters: 1, Phases: []Phase{{From: 1, Least: 1, Most: 4}, {From: 2, Least: 3, Most: 4}}}
			r.Members[3].Voters, r.Members[3].At = []string{"h1", "h2"}, time.Hour
		}, "2 voters, allowed: 3 to 4"},
		{"grown, as the owner wants", func(r *Recording) {
			r.Rules = Rules{Least: 1, Most: 2, Clusters: 1, Phases: []Phase{{From: 1, Least: 1, Most: 4}, {From: 2, Least: 3, Most: 4}}}
		}, ""},
		{"grown, and the number stays behind", func(r *Recording) { r.Rules.Phases = []Phase{{From: 5, Least: 4, Most: 5}} }, "3 voters, allowed: 4 to 5"},
		{"planned where nothing may be", func(r *Recording) { r.Rules.Quiet = 3 }, "nothing might be planned or be under way: plan h3>h4"},
		{"planned later", func(r *Recording) { r.Rules.Quiet = 1 }, ""},
		{"no decision was seen", func(r *Recording) { r.Rules.Quiet, r.Decisions = 1, nil }, "no decision was seen"},
		{"planned beside an operation", func(r *Recording) { r.Decisions[1].Is.Operation = &membership.Operation{ID: "7"} }, "planned beside operation 7"},
		{"the vote of a host that has none", func(r *Recording) { r.Decisions[1].Is.Plan.Out = "h9" }, "h9 does not vote"},
		{"a vote for a host that has one", func(r *Recording) { r.Decisions[1].Is.Plan.In = "h2" }, "h2 votes, and was to get"},
		{"a removal that was none", func(r *Recording) { r.Operations[0].MembersAfter = []string{"3", "4"} }, "h3 is still a member"},
		{"a newcomer that is none", func(r *Recording) { r.Operations[0].MembersAfter = []string{"1"} }, "h4 is no member"},
		{"turned back, and a member is left behind", func(r *Recording) { r.Operations[1].MembersAfter = []string{"1", "4", "5"} }, "operation 2 undone"},
	} {
		r := good()
		c.spoil(r)
		err := r.Judge()
		if said := errorText(err); c.want == "" && err != nil || !strings.Contains(said, c.want) {
			t.Errorf("%s: want %q, got %q", c.name, c.want, said)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRecordingIsReadAsItWasWritten(t *testing.T) {
	dir, want := t.TempDir(), good()
	want.Open = &membership.Operation{ID: "3", Out: "h2", In: "h3"}
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Open(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
	}
	for name := range added { // as it was before these were kept
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	want.Decisions, want.Open, want.Metrics = nil, nil, nil
	if got, err = Open(dir); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
	}
}

func TestOnlyChangesAreKept(t *testing.T) {
	var seen []Members
	for at, voters := range [][]string{{"h1"}, {"h1"}, {"h1", "h2"}} {
		seen = KeepMembers(seen, Members{At: time.Duration(at), Voters: voters})
	}
	if len(seen) != 2 || seen[0].At != 0 || seen[0].Until != 1 || seen[1].At != 2 || seen[1].Until != 2 {
		t.Errorf("member lists: %+v", seen)
	}
	var decisions []Decision
	for at, d := range []membership.Decision{{Kind: membership.Steady}, {Kind: membership.Steady, Voters: 3}, {Kind: membership.StepNext, Operation: &membership.Operation{ID: "1"}},
		{Kind: membership.StepNext, Operation: &membership.Operation{ID: "2"}}} {
		decisions = KeepDecision(decisions, time.Duration(at), d)
	}
	if len(decisions) != 3 || decisions[0].Until != 1 || decisions[1].Until != 2 {
		t.Errorf("decisions: %+v", decisions)
	}
}

// TestJudge judges the recordings in the directories that are named after -args.
func TestJudge(t *testing.T) {
	dirs := slices.DeleteFunc(slices.Clone(flag.Args()), func(a string) bool { i, err := os.Stat(a); return err != nil || !i.IsDir() })
	if len(dirs) == 0 {
		t.Skip("no recording is named: go test ./mesh-tests/record -run TestJudge -v -args DIRECTORY")
	}
	for _, dir := range dirs {
		r, err := Open(dir)
		if err == nil {
			err = r.Judge()
		}
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(dir), err)
			continue
		}
		t.Logf("%s: %d operations of clients, %d member lists, %d decisions and %d operations are as they have to be",
			filepath.Base(dir), len(r.History), len(r.Members), len(r.Decisions), len(r.Operations))
		if r.Open != nil {
			t.Logf("%s: it ended in the middle of operation %s: %s", filepath.Base(dir), r.Open.ID, r.Open.Title())
		}
	}
}
