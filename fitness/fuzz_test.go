package fitness

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

func FuzzFigure(f *testing.F) {
	for _, s := range []string{`0`, `0.25`, `"inf"`, `null`, `-1`, `1e999`, `1e-400`, `"nan"`, `{}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var x, y Figure
		if json.Unmarshal(data, &x) != nil {
			return
		}
		written, err := json.Marshal(x)
		if err != nil {
			t.Fatalf("%s was read as %v and cannot be written: %v", data, float64(x), err)
		}
		if err := json.Unmarshal(written, &y); err != nil || x != y {
			t.Fatalf("%s was written as %s and read again as %v (%v)", data, written, float64(y), err)
		}
		x.Text("s")
		x.Text("B")
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"3s", "250ms", "1h30m", "0", "-1s", "1.5h", "9223372036854775807ns", "3", "", "µs", "1e9s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var x, y Duration
		if err := x.UnmarshalText([]byte(text)); err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("an error of %d characters", len(err.Error()))
			}
			return
		}
		if x < 0 {
			t.Fatalf("%q was read as %s", text, x)
		}
		written, _ := x.MarshalText()
		if err := y.UnmarshalText(written); err != nil || x != y {
			t.Fatalf("%q was written as %s and read again as %s (%v)", text, written, y, err)
		}
	})
}

// FuzzSeriesJSON reads what an agent might send, however hostile: no panic, and
// a reading that hangs together. The samples are repeated until they fill a
// window, since a fuzzer would not find a hundred.
func FuzzSeriesJSON(f *testing.F) {
	s, c := plain(RTT, repeat(5, 0.02))
	s.Peer = "h2"
	whole, err := json.Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.ReplaceAll(whole, []byte(`"rtt"`), []byte(`"clock"`)))
	f.Add(bytes.ReplaceAll(whole, []byte(`0.02`), []byte(`-1e308`)))
	f.Add(bytes.ReplaceAll(whole, []byte(`"n":5`), []byte(`"n":18446744073709551615`)))
	f.Add([]byte(`{"signal":"wal_fsync","samples":[{"n":1,"t":-9223372036854775808,"v":1e300},{"n":2,"t":9223372036854775807,"v":1e300,"s":"lost"}],"bounds":[{"t":9223372036854775807,"lo":"inf","hi":0,"count":18446744073709551615},{"t":-9223372036854775808,"lo":0,"hi":"inf","count":0}]}`))
	f.Add([]byte(`{"signal":"memory","samples":[{"n":0,"t":0,"v":0,"l":-1,"s":"new"}],"error":"x"}`))
	f.Add([]byte(`{"signal":"","samples":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := c
		var s Series
		if len(data) > 1<<20 || json.Unmarshal(data, &s) != nil {
			return
		}
		if n := len(s.Samples); n > 0 && n < WindowSize {
			for i := n; i < WindowSize+10; i++ {
				m := s.Samples[i-n]
				m.Seq, m.At = m.Seq+uint64(n), m.At+int64(n)*c.Period.Microseconds()
				s.Samples = append(s.Samples, m)
			}
			if last := s.Samples[len(s.Samples)-1]; last.At > 0 && last.At <= end {
				c.Now = last.Time()
			}
		}
		for _, period := range []time.Duration{c.Period, 0, 1 << 62} {
			c := c
			c.Period, c.Limit = period, DefaultLimits().For(s.Signal, 1<<33)
			if err := sane(Read(s, c)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
