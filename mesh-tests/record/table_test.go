package record

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/reliability.md anew")

func TestRunsAreCounted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	for _, r := range []Run{
		{Scenario: "TestB", Passed: true, Seconds: 60, Acknowledged: 100, Gap: 0.5, Well: 12, Faults: []string{"a cut", "healed"}},
		{Scenario: "TestA", Passed: true, Seconds: 30, Acknowledged: 10, Gap: 1},
		{Scenario: "TestB", Seconds: 400, Acknowledged: 7, Gap: 99, Failed: "never: well"},
		{Scenario: "TestB", Passed: true, Seconds: 50, Acknowledged: 100, Gap: 2, Well: 8, Faults: []string{"a cut", "healed"}},
	} {
		if err := Append(file, r); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	const want = `| scenario | runs | passed | faults | writes | longest gap | well again | took |
| --- | --- | --- | --- | --- | --- | --- | --- |
| ` + "`TestA`" + ` | 1 | 1 | 0 | 10 | 1.00 s / 1.00 s | – | 30 s / 30 s |
| ` + "`TestB`" + ` | 3 | 2 | 4 | 207 | 0.50 s / 2.00 s | 8.00 s / 12 s | 50 s / 60 s |
| all | 4 | 3 | 4 | 217 | 1.00 s / 2.00 s | 8.00 s / 12 s | 50 s / 60 s |
`
	if got := Table(runs); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReadNamesTheLine(t *testing.T) {
	for _, text := range []string{"{}", "x", `{"scenario":"a"} {}`} {
		if _, err := Read(strings.NewReader(`{"scenario":"a"}` + "\n" + text)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestTable prints the table of the files with runs that are named after -args.
func TestTable(t *testing.T) {
	for _, file := range flag.Args() {
		t.Logf("%s\n%s", file, Table(readRuns(t, file)))
	}
}

func readRuns(t *testing.T, file string) []Run {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := Read(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return runs
}

// The figures of docs/reliability.md are those of the runs that are kept here:
// go test ./mesh-tests/record -run TestReliability -rewrite
func TestReliabilityIsWhatWasRecorded(t *testing.T) {
	const page, begin, end = "../../docs/reliability.md", "<!-- runs -->\n", "<!-- end of runs -->"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(b), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no %q and %q", page, begin, end)
	}
	want := head + begin + Table(readRuns(t, "testdata/runs.jsonl")) + end + tail
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(b) {
		t.Errorf("%s is not what was recorded: go test ./mesh-tests/record -run TestReliability -rewrite", page)
	}
}
