package membership

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kept are cases whose inputs and decisions stand in testdata/inputs, in the
// form that people keep. go test -run TestKept -rewrite writes them anew: a
// difference in an inputs file means that files from the field can break.
var kept = []struct{ name, script string }{
	{"steady", ""},
	{"slow-voter", "rtt h3 * 300x151ms\nzone h1 attic\nlink h5 wifi\nrelayed h5 h1\nclock h1 h2 300x800ms"},
	{"sick-disk", "wal_fsync h3 300x30ms\nmark h2 pinned the only one on the UPS\nended 2h h5 h3 completed"},
	{"pinned", "rtt h3 * 300x151ms\nmark h3 pinned behind the UPS"},
	{"no-candidate", "rtt h3 * 300x151ms\nrtt h4 h1 300x60ms\nwal_fsync h5 99x2ms"},
	{"many-unfit", "stability h1 250x0 1x1 49x0\nstability h2 250x0 1x1 49x0"},
	{"voter-down", "silent h2 3h\nagent h2 3h\nrtt h2 * 300xlost"},
	{"space-alarm", "alarm NOSPACE h2\nreports h2 memberID:2 alarm:NOSPACE"},
	{"learner", "learner h4\nchanged 1m"},
	{"cluster-replaced", "recorded c0\ndowngrade 3.6.0"},
	{"request", "request h2 h5 3s new rack"},
	{"membership-unknown", "error no member served the member list within 2s"},
}

func keptFile(name string) string { return filepath.Join("testdata", "inputs", name) }

func TestKeptInputsAreDecidedAsBefore(t *testing.T) {
	rewrite := flag.Lookup("rewrite").Value.String() == "true" // datadriven's
	for _, k := range kept {
		f := newFleet(3, 2)
		for line := range strings.Lines(k.script) {
			if err := f.apply(line); err != nil {
				t.Fatal(err)
			}
		}
		f.in.Previous = Decide(f.inputs()).Remember()
		var file bytes.Buffer
		if err := WriteInputs(&file, f.inputs()); err != nil {
			t.Fatal(err)
		}
		if rewrite {
			write(t, k.name+".inputs.json", file.Bytes())
		}
		data := read(t, k.name+".inputs.json")
		if diff := cmp.Diff(string(data), file.String()); diff != "" {
			t.Errorf("%s: inputs are written differently now (-kept +now):\n%s", k.name, diff)
		}
		in, err := ReadInputs(data)
		if err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		decision, err := json.MarshalIndent(Decide(in), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		decision = append(decision, '\n')
		if rewrite {
			write(t, k.name+".decision.json", decision)
		}
		if diff := cmp.Diff(string(read(t, k.name+".decision.json")), string(decision)); diff != "" {
			t.Errorf("%s: decided differently now (-kept +now):\n%s", k.name, diff)
		}
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(keptFile(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(keptFile(""), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keptFile(name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadInputsRefuses(t *testing.T) {
	good := string(read(t, "slow-voter.inputs.json"))
	edit := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q to edit", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, tt := range []struct{ name, file, want string }{
		{"empty", "", "inputs line 1: unexpected end of JSON input"},
		{"truncated", good[:len(good)/2], "unexpected end of JSON input"},
		{"something else", `[1, 2]`, "not an inputs file"},
		{"a decision", string(read(t, "slow-voter.decision.json")), `it has no "version"`},
		{"no version", edit(`"version": 1,`, ""), `it has no "version"`},
		{"newer version", edit(`"version": 1,`, `"version": 2,`), "inputs of version 2; this build reads version 1: use the build that recorded it"},
		{"version in words", edit(`"version": 1,`, `"version": "one",`), "inputs line 2: this is not an inputs file"},
		{"half a version", edit(`"version": 1,`, `"version": 1.5,`), "not an inputs file"},
		{"another after it", good + "{}", "invalid character '{' after top-level value"},
		{"unknown key", edit(`"mode": "dry-run",`, `"mode": "dry-run",`+"\n"+`"mood": "good",`), "inputs line 6: policy.mood: unknown key; known there: flavour, limits, maximum, mode, paused, period, regrade_headroom, soak, stall_time, stop, target"},
		{"key in capitals", edit(`"mode":`, `"MODE":`), "inputs line 5: policy.MODE: unknown key"},
		{"key given twice", edit(`"mode": "dry-run",`, `"mode": "dry-run",`+"\n"+`"mode": "active",`), "inputs line 6: policy.mode: given twice"},
		{"unknown key deep inside", edit(`"responding": true,`, `"responding": true, "ready": true,`), "view.members[0].ready: unknown key"},
		{"a word for a number", edit(`"target": 3`, `"target": "three"`), "policy.target: found string, want int"},
		{"below zero", edit(`"raft_term": 7`, `"raft_term": -7`), "view.members[0].raft_term: found number -7, want uint64"},
		{"no unit", edit(`"period": "3s"`, `"period": "3"`), `policy.period: "3" is not a duration`},
		{"unknown band", edit(`"band": "under"`, `"band": "good"`), "readings[0].band: fitness: band \"good\" is not known"},
		{"no figure", edit(`"voter": 0.025`, `"voter": null`), "limit.voter: fitness: figure null"},
		{"a list for an object", edit(`"policy": {`, `"policy": [], "x": {`), "policy: found [, want an object"},
		{"an object for a list", edit(`"readings": [`, `"readings": {}, "x": [`), "readings: found {, want a list"},
		{"null for an object", edit(`"previous": {`, `"previous": null, "x": {`), "previous: found <nil>, want an object"},
	} {
		_, err := ReadInputs([]byte(tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwant %q in it", tt.name, err, tt.want)
		} else if !strings.HasPrefix(err.Error(), "membership: ") {
			t.Errorf("%s: %v does not say who says it", tt.name, err)
		}
	}
}

func TestReadInputsIsBounded(t *testing.T) {
	_, err := ReadInputs(make([]byte, MaxInputs+1))
	if err == nil || !strings.Contains(err.Error(), "at most 67108864 are read") {
		t.Errorf("%v, want the bound", err)
	}
}

// What can be read is written and read again as it was, and can be decided.
func FuzzReadInputs(f *testing.F) {
	for _, k := range kept {
		f.Add(read(f, k.name+".inputs.json"))
	}
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := ReadInputs(data)
		if err != nil {
			return
		}
		var file bytes.Buffer
		if err := WriteInputs(&file, in); err != nil {
			t.Skip(err) // a year past 9999 is read, and cannot be written
		}
		again, err := ReadInputs(file.Bytes())
		if err != nil {
			t.Fatalf("%v in\n%s", err, &file)
		}
		if a, b := Decide(in), Decide(again); a.String() != b.String() {
			t.Errorf("decided\n%s\nand after a round trip\n%s", a, b)
		}
	})
}
