package fitness

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestFigureJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`0`, `0`},
		{`0.25`, `0.25`},
		{`1e-9`, `1e-09`},
		{`2147483648`, `2.147483648e+09`}, // shortest form that reads back the same
		{`"inf"`, `"inf"`},                // JSON has no infinity
		{`-0.5`, `-0.5`},                  // a clock's offset
		{`null`, `neither`},               // missing is not zero
		{`"0.25"`, `neither`},
		{`"Inf"`, `neither`},
		{`"-inf"`, `neither`},
		{`1e999`, `neither`}, // does not fit
		{`[]`, `neither`},
		{`true`, `neither`},
	} {
		var f Figure
		err := json.Unmarshal([]byte(c.in), &f)
		got, _ := json.Marshal(f)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), c.want) {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(-1)} {
		if _, err := json.Marshal(Figure(f)); err == nil {
			t.Errorf("%v was written; no figure is ever that", f)
		}
	}
}

func TestFigureText(t *testing.T) {
	for _, c := range []struct {
		f    float64
		unit string
		want string
	}{
		{0, "s", "0.00 ms"},
		{0.0005, "s", "0.50 ms"},
		{0.00999, "s", "9.99 ms"},
		{0.01, "s", "10.0 ms"},
		{0.025, "s", "25.0 ms"},
		{0.1, "s", "100 ms"},
		{0.151, "s", "151 ms"},
		{1.5, "s", "1.50 s"},
		{12, "s", "12 s"},
		{-0.3, "s", "-300 ms"},
		{1e300, "s", "1000"}, // absurd, but no panic
		{math.Inf(1), "s", "lost"},
		{3.2 * (1 << 30), "B", "3.2 GiB"},
		{512 << 20, "B", "512 MiB"},
		{3, "1", "3"},
	} {
		if got := Figure(c.f).Text(c.unit); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v %s: got %q, want %q", c.f, c.unit, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		in, want string // as written again, or what the error says
	}{
		{"3s", "3s"},
		{"250ms", "250ms"},
		{"1h30m", "1h30m0s"},
		{"300s", "5m0s"}, // the way Go prints it
		{"0", "0s"},      // the one number that needs no unit
		{"3", "not a duration"},
		{"", "not a duration"},
		{"-3s", "negative"},
		{"3 s", "not a duration"},
		{"9999999h", "not a duration"}, // does not fit
		{strings.Repeat("1s", 33), "at most 64"},
	} {
		var d Duration
		err := d.UnmarshalText([]byte(c.in))
		got := d.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
	var d Duration
	if err := json.Unmarshal([]byte(`3`), &d); err == nil {
		t.Error("a bare number in JSON was read; it has no unit")
	}
	if d = Duration(1500 * time.Millisecond); d.Seconds() != 1.5 || d.Std() != 1500*time.Millisecond {
		t.Errorf("%v is %v s and %v", d, d.Seconds(), d.Std())
	}
}

// TestLimits pins the limits where a figure that is exactly one must pass or
// fail (S076). Figures are compared as float64, so they must be the very number
// that a probe's time.Duration.Seconds gives.
func TestLimits(t *testing.T) {
	seconds := func(d time.Duration) Limit { return Limit{Voter: Figure(d.Seconds()), Candidate: Figure(d.Seconds())} }
	pair := func(voter, candidate time.Duration) Limit {
		return Limit{Voter: Figure(voter.Seconds()), Candidate: Figure(candidate.Seconds())}
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		election time.Duration
		signal   Signal
		memory   int64
		want     Limit
	}{
		{"K3s's timing", 5000 * ms, RTT, 0, pair(500*ms, 250*ms)},
		{"etcd's default", 1000 * ms, RTT, 0, pair(100*ms, 50*ms)},
		{"not a round number", 1100 * ms, RTT, 0, pair(110*ms, 55*ms)},
		{"fsync", 5000 * ms, WALFsync, 0, seconds(10 * ms)}, // timing changes nothing
		{"commit", 1000 * ms, BackendCommit, 0, seconds(25 * ms)},
		{"clock", 1000 * ms, Clock, 0, seconds(500 * ms)},
		{"memory of nobody knows what", 1000 * ms, Memory, 0, Limit{2 << 30, 2 << 30}}, // the storage quota
		{"memory of 8 GiB", 1000 * ms, Memory, 8 << 30, Limit{2 << 30, 2 << 30}},       // a tenth is less
		{"stability", 1000 * ms, Stability, 8 << 30, Limit{}},                          // any restart is one too many
	} {
		l := DefaultLimits()
		l.ElectionTimeout = Duration(c.election)
		if got := l.For(c.signal, c.memory); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	l := DefaultLimits()
	l.MemoryUsedMax = 0.75
	if got, want := l.For(Memory, 64<<30), (Limit{16 << 30, 16 << 30}); got != want {
		t.Errorf("a quarter of 64 GiB must stay available: got %v, want %v", got, want)
	}
}
