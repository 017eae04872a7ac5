package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
)

// ticking is a clock that advances by a millisecond per look.
func ticking() clock {
	at := int64(1_700_000_000_000_000)
	return func() int64 { at += 1000; return at }
}

func TestRecordKeepsTheNewest(t *testing.T) {
	r := newRecord(ticking())
	a, b := r.ring(fitness.RTT, "h2"), r.ring(fitness.Memory, "")
	const added = fitness.SeriesSize + 50
	for i := range added {
		r.sample(a, float64(i), 0, fitness.Measured, "")
		if i%10 == 0 {
			r.sample(b, 1, 0, fitness.Measured, "")
		}
	}
	got := r.report(0)
	if got.Last != added*11/10 || len(got.Series) != 2 || got.Series[0].Signal != fitness.Memory {
		t.Fatalf("last %d, series %d, want the host's signals first", got.Last, len(got.Series))
	}
	s := got.Series[1].Samples
	if len(s) != fitness.SeriesSize || s[0].Value != 50 || s[len(s)-1].Value != added-1 {
		t.Errorf("%d samples, %v to %v, want the newest %d", len(s), s[0].Value, s[len(s)-1].Value, fitness.SeriesSize)
	}
	if !slices.IsSortedFunc(s, func(a, b fitness.Sample) int { return int(a.Seq) - int(b.Seq) }) {
		t.Error("not in order")
	}
	for _, after := range []uint64{0, 1, 200, got.Last - 2, got.Last - 1, got.Last, 1 << 60} {
		for _, s := range r.report(after).Series {
			for _, m := range s.Samples {
				if m.Seq <= after {
					t.Fatalf("asked for samples after %d, got %d", after, m.Seq)
				}
			}
		}
	}
	if n := len(r.report(got.Last - 2).Series[1].Samples); n != 2 {
		t.Errorf("%d samples after the last but two, want 2", n)
	}
	r.forget("h2")
	if n := len(r.report(0).Series); n != 1 {
		t.Errorf("%d series after the peer left, want 1", n)
	}
}

func TestRecordTellsWhatFails(t *testing.T) {
	r := newRecord(ticking())
	p := r.probe("memory")
	if s := r.report(0).Facts.Probes[0]; s.OK || s.Error == "" {
		t.Errorf("%+v: a probe that has not run is not fine", s)
	}
	g := r.ring(fitness.Memory, "")
	broken := errors.New("no memory\nin " + strings.Repeat("x", 1000))
	if !r.ran(p, time.Second, broken) {
		t.Error("the first failure is news")
	}
	if r.ran(p, time.Second, broken) {
		t.Error("the second is none")
	}
	r.sample(g, 0, 0, fitness.Failed, broken.Error())
	got := r.report(0)
	s := got.Series[0]
	if s.Samples[0].State != fitness.Failed || len(s.Error) > 2*maxText || strings.Contains(s.Error, "\n") || s.Error == "" {
		t.Errorf("%+v", s)
	}
	if st := got.Facts.Probes[0]; st.OK || st.Error == "" || st.Seconds != 1 {
		t.Errorf("%+v", st)
	}
	if !r.ran(p, 0, nil) || r.report(0).Facts.Probes[0].Error != "" {
		t.Error("that it works again is news, and the error is gone")
	}
	r.sample(g, 1, 0, fitness.Measured, "")
	if e := r.report(0).Series[0].Error; e != "" {
		t.Errorf("the series still says %q", e)
	}
}

func TestRecordCountsLostInARow(t *testing.T) {
	r := newRecord(ticking())
	g := r.ring(fitness.RTT, "h2")
	for i, tt := range []struct {
		state fitness.State
		want  int
	}{{fitness.Lost, 1}, {fitness.Lost, 2}, {fitness.Measured, 2}, {fitness.Measured, 0}, {fitness.Lost, 1}} {
		if got := r.sample(g, 0, 0, tt.state, "x"); got != tt.want {
			t.Errorf("sample %d: %d lost in a row, want %d", i, got, tt.want)
		}
	}
	if g.lost != 3 || g.window.Lost() != 3 {
		t.Errorf("%d lost, %d in the window, want 3", g.lost, g.window.Lost())
	}
}

func TestSamplesStayInOrderWhenReadOutOfOrder(t *testing.T) {
	r := newRecord(ticking())
	g := r.ring(fitness.WALFsync, "")
	r.sampleAt(g, 2000, 1, 0, fitness.Measured, "")
	r.sampleAt(g, 1999, 1, 0, fitness.Measured, "")
	if s := r.report(0).Series[0].Samples; s[1].At != 2000 {
		t.Errorf("%+v", s)
	}
}

func TestLargestReportFits(t *testing.T) {
	r := newRecord(func() int64 { return 1_799_999_999_999_999 })
	full := func(g *ring) {
		for range fitness.SeriesSize {
			r.seq = 1 << 50
			r.sample(g, 0.0123456789012345678, 12345678912*time.Nanosecond, fitness.Lost, "")
		}
		for range 2 * maxBounds {
			r.bound(g, fitness.Bound{At: 1_799_999_999_999_999, Lo: 0.001, Hi: fitness.Inf, N: 1 << 50})
		}
	}
	for _, s := range fitness.HostSignals {
		full(r.ring(s, ""))
	}
	for range MaxPeers {
		name := strings.Repeat("h", 63)
		full(r.ring(fitness.RTT, name))
		full(r.ring(fitness.Clock, name))
	}
	b, err := json.Marshal(r.report(0))
	if err != nil || len(b) > maxReport/2+maxReport/4 {
		t.Errorf("%d bytes, %v, want well below %d", len(b), err, maxReport)
	}
}

// BenchmarkSample is one sample added to a full ring and its window, and the
// p99 read. The goal is 200 ns and no allocation.
func BenchmarkSample(b *testing.B) {
	r := newRecord(bootClock())
	g := r.ring(fitness.RTT, "h2")
	at := r.now()
	v := func(i int) float64 { return float64(i*2654435761%1000) / 1000 }
	for i := range fitness.SeriesSize {
		r.sampleAt(g, at, v(i), 0, fitness.Measured, "")
	}
	b.ReportAllocs()
	i := 0
	var p99 fitness.Figure
	for b.Loop() {
		i++
		r.sampleAt(g, at+int64(i), v(i), 0, fitness.Measured, "")
		p99 = g.window.P99()
	}
	_ = p99
}

// BenchmarkSampleNow is the same with the clock read.
func BenchmarkSampleNow(b *testing.B) {
	r := newRecord(bootClock())
	g := r.ring(fitness.RTT, "h2")
	b.ReportAllocs()
	for b.Loop() {
		r.sample(g, 1, 0, fitness.Measured, "")
	}
}
