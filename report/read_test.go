package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"suffrage/membership"
)

func TestLines(t *testing.T) {
	one, _ := moment(0).Append(nil)
	long := bytes.Repeat([]byte{'x'}, membership.MaxMoment+1)
	for _, test := range []struct {
		why, text, want string
		moments         int
	}{
		{"two", string(one) + string(one), "", 2},
		{"nothing", "", "", 0},
		{"a bad one names its line, and the next is read", string(one) + "{\n" + string(one), "a.jsonl:2: membership: moment: unexpected EOF", 2},
		{"one that is being written just now", string(one) + string(one[:40]), "", 1},
		{"one that no controller writes", string(long) + "\n" + string(one), "a.jsonl:1: report: a line of more than 4194304 bytes", 1},
		{"an empty line", string(one) + "\n" + string(one), "", 2},
	} {
		n, said := 0, []string{}
		for _, err := range Lines("a.jsonl", strings.NewReader(test.text)) {
			if err == nil {
				n++
				continue
			}
			said = append(said, err.Error())
			var bad *BadLine
			if !errors.As(err, &bad) {
				t.Errorf("%s: %v is no BadLine", test.why, err)
			}
		}
		if n != test.moments || strings.Join(said, "; ") != test.want {
			t.Errorf("%s: %d moments, %q; want %d, %q", test.why, n, said, test.moments, test.want)
		}
	}
}

// Whatever a file holds, a report of it can be written.
func FuzzReport(f *testing.F) {
	one, _ := moment(0, plan).Append(nil)
	two, _ := moment(minute, slow).Append(nil)
	f.Add(append(one, two...))
	f.Add(append(two, bytes.ReplaceAll(one, []byte("h3"), []byte("<script>"))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := New(noon, noon.Add(10*minute))
		for m, err := range Lines("f", bytes.NewReader(data)) {
			if err == nil {
				p.Add(m)
			}
		}
		r := p.Report()
		var html, text bytes.Buffer
		if err := errors.Join(r.HTML(&html), r.Text(&text)); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(html.Bytes(), []byte("<script")) {
			t.Error("a script is in the page")
		}
		if bytes.ContainsAny(text.Bytes(), "\x1b\r\b") {
			t.Error("the text moves the cursor")
		}
	})
}
