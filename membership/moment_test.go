package membership

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
)

// A moment is written and read as it is, whatever the inputs.
func TestMomentOfInputs(t *testing.T) {
	files, _ := filepath.Glob("testdata/inputs/*.inputs.json")
	if len(files) == 0 {
		t.Fatal("no inputs")
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		in, err := ReadInputs(data)
		if err != nil {
			t.Fatal(err)
		}
		d := Decide(in)
		m := MomentOf(in, d)
		m.Next = fitness.Duration(time.Minute)
		if m.Kind != d.Kind || len(m.Refusals) != len(d.Refusals) || len(m.Hosts) != len(d.Verdicts) {
			t.Errorf("%s: the moment %+v does not say what the decision does", f, m)
		}
		line, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ReadMoment(line)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := back.Append(nil)
		if diff := cmp.Diff(string(line), string(again)); diff != "" || !m.Same(back) {
			t.Errorf("%s: read back it is another (-written +read):\n%s", f, diff)
		}
	}
}

const aMoment = `{"version":1,"at":"2026-01-01T12:00:00Z","next":"2m0s","mode":"dry-run","kind":"steady","voters":["h1"],"fit_voters":1,"tolerance":0,"hosts":[{"host":"h1","status":"fit","mark":"eligible"}],"limits":{"election_timeout":"1s","wal_fsync":"10ms","backend_commit":"25ms","storage_quota":1,"memory_used_max":0.9},"figures":{"rtt h1 h2":[0.001,"inf"]}}`

func TestReadMoment(t *testing.T) {
	for _, test := range []struct{ why, line, want string }{
		{"a good one", aMoment, ""},
		{"an unknown key", strings.Replace(aMoment, "mode", "mood", 1), `unknown field "mood"`},
		{"of a later build", strings.NewReplacer(`"version":1`, `"version":2`, "mode", "mood").Replace(aMoment), "of version 2; this build reads version 1"},
		{"no time", strings.Replace(aMoment, "2026-01-01T12", "0001-01-01T00", 1), "no time"},
		{"never another", strings.Replace(aMoment, "2m0s", "0s", 1), "more than 0"},
		{"two on a line", aMoment + aMoment, "something follows"},
		{"cut off", aMoment[:100], "unexpected EOF"},
		{"the worst below now", strings.Replace(aMoment, `"inf"`, "0", 1), "rtt h1 h2"},
	} {
		_, err := ReadMoment([]byte(test.line))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.why, err, test.want)
		}
	}
}

func FuzzReadMoment(f *testing.F) {
	f.Add([]byte(aMoment))
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := ReadMoment(line)
		if err != nil {
			return
		}
		out, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("%q is not one line", out)
		}
		if _, err := ReadMoment(out); err != nil {
			t.Errorf("%q is not read again: %v", out, err)
		}
	})
}
