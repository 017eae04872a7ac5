package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// op is "put a 1-3" or "get a 4-5", with "?" for one without an answer.
func op(client int, text string, call, ret int) Operation {
	f := strings.Fields(text)
	o := Operation{Client: client, Key: "k", Call: time.Duration(call), Return: time.Duration(ret), Unknown: slices.Contains(f, "?")}
	switch {
	case f[0] == "put":
		o.Put = f[1]
	case len(f) > 1 && f[1] != "?":
		o.Got = f[1]
	}
	return o
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		history History
		want    string // of the error, empty for linearizable
	}{
		"empty":                        {},
		"one after the other":          {history: History{op(1, "put a", 1, 2), op(2, "get a", 3, 4), op(1, "put b", 5, 6), op(2, "get b", 7, 8)}},
		"at the same time, either way": {history: History{op(1, "put a", 1, 9), op(2, "put b", 1, 9), op(3, "get b", 2, 3), op(3, "get a", 4, 5)}},
		"a lost write":                 {history: History{op(1, "put a", 1, 2), op(2, "get", 3, 4)}, want: `client 2 read "" at 3ns, after "a"`},
		"a lost write, the one before is read": {history: History{op(1, "put a", 1, 2), op(1, "put b", 3, 4), op(2, "get a", 5, 6)},
			want: `read "a" at 5ns, after "b"`},
		"back and forth": {history: History{op(1, "put a", 1, 9), op(2, "put b", 1, 9), op(3, "get b", 2, 3), op(3, "get a", 4, 5), op(3, "get b", 6, 7)},
			want: "no order of its 5 operations"},
		"nobody wrote it":                       {history: History{op(2, "get z", 5, 6)}, want: "which nobody wrote"},
		"unknown and never":                     {history: History{op(1, "put a", 1, 2), op(1, "put b ?", 3, 4), op(2, "get a", 5, 6)}},
		"unknown and done":                      {history: History{op(1, "put b ?", 3, 4), op(2, "get b", 5, 6)}},
		"unknown and long after":                {history: History{op(1, "put b ?", 3, 4), op(1, "put c", 5, 6), op(2, "get c", 7, 8), op(2, "get b", 9, 10)}},
		"unknown, seen and gone again":          {history: History{op(1, "put a", 1, 2), op(1, "put b ?", 3, 4), op(2, "get b", 5, 6), op(2, "get a", 7, 8)}, want: "no order"},
		"read before it was written":            {history: History{op(2, "get a", 1, 2), op(1, "put a", 3, 4)}, want: "no order"},
		"unknown, read before it was asked for": {history: History{op(2, "get a", 1, 2), op(1, "put a ?", 3, 4)}, want: "no order"},
		"unknown, two of one value":             {history: History{op(1, "put a ?", 1, 2), op(2, "get a", 3, 4), op(1, "put b", 5, 6), op(1, "put a ?", 7, 8), op(2, "get a", 9, 10)}},
		"many unknown, some of them read":       {history: manyUnknown()},
		"a read without an answer":              {history: History{op(1, "put a", 1, 2), op(2, "get ?", 3, 4)}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(test.history)
			var v *Violation
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%v", err)
			case test.want != "" && (!errors.As(err, &v) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want %q", err, test.want)
			}
			var b bytes.Buffer
			if err := test.history.Write(&b); err != nil {
				t.Fatal(err)
			}
			if again, err := Read(&b); err != nil || !slices.Equal(again, test.history) {
				t.Errorf("read again: %v, %v", again, err)
			}
		})
	}
}

// manyUnknown could not be decided if each were left open to the end.
func manyUnknown() (h History) {
	for i := range 2000 {
		value, at := fmt.Sprint(i), 10*i
		switch {
		case i%20 == 0:
			h = append(h, op(1, "put "+value+" ?", at, at+1))
		case i%20 == 1:
			h = append(h, op(2, "put "+value+" ?", at, at+1), op(3, "get "+value, at+2, at+30), op(4, "get "+value, at+3, at+31))
		default:
			h = append(h, op(1, "put "+value, at, at+25), op(2, "put "+value+"x", at+1, at+24))
		}
	}
	return h
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"x", `{"key":"k"}{`, `{"put":"a"}`, `{"key":"k","call":3,"return":2}`, `{"key":"k","new":1}`} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "operation ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestJudge judges recordings that are named after -args.
func TestJudge(t *testing.T) {
	files := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-") })
	if len(files) == 0 {
		t.Skip("no recording is named: go test ./mesh-tests/history -run TestJudge -args FILE")
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Read(f)
		f.Close()
		if err == nil {
			err = errors.Join(Check(h), CheckReads(h))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Logf("%s: %d operations, linearizable", name, len(h))
		}
	}
}
