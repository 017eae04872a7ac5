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
		Members: []Members{{At: 1, Cluster: "a", Voters: three}, {At: 2, Cluster: "a", Voters: three, Learners: []string{"h4"}}, {At: 3, Cluster: "a", Voters: four}},
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
		{"without a quorum it may", func(r *Recording) { r.Writes.Failed, r.Rules.Outage = 1, true }, ""},
		{"a write was lost", func(r *Recording) { r.History[1].Got = "" }, "no order"},
		{"a vote was taken before another was given", func(r *Recording) { r.Members[2].Voters = []string{"h1", "h2"} }, "2 voters, allowed: 3 to 4"},
		{"too many votes", func(r *Recording) { r.Members[2].Voters = []string{"h1", "h2", "h3", "h4", "h5"} }, "5 voters"},
		{"two learners", func(r *Recording) { r.Members[1].Learners = []string{"h4", "h5"} }, "2 learners"},
		{"another cluster", func(r *Recording) { r.Members[2].Cluster = "b" }, "2 clusters, allowed: 1"},
		{"another cluster, as the owner wants", func(r *Recording) { r.Members[2].Cluster, r.Rules.Clusters = "b", 2 }, ""},
		{"two clusters by turns", func(r *Recording) { r.Members[1].Cluster, r.Rules.Clusters = "b", 3 }, "two clusters answer"},
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
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Open(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
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
		t.Logf("%s: %d operations of clients, %d member lists and %d operations are as they have to be", filepath.Base(dir), len(r.History), len(r.Members), len(r.Operations))
	}
}
