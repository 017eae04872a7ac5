package fitness

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// r is a reading that has held for so many evaluations and began so many
// minutes after t0.
func r(s Signal, peer string, band Band, held, minutes int, figure float64) Reading {
	l := DefaultLimits()
	l.ElectionTimeout = Duration(5 * time.Second)
	out := Reading{Signal: s, Host: "h1", Peer: peer, Band: band, Held: held, Figure: Figure(figure), Limit: l.For(s, 0), Count: 100,
		Since: t0.Add(time.Duration(minutes) * time.Minute)}
	if band == Unknown {
		out.Note, out.Count = "have 99 samples, need 100", 99
	}
	return out
}

func TestJudge(t *testing.T) {
	var (
		rtt      = r(RTT, "h2", Under, Whole, 1, 0.020)
		wal      = r(WALFsync, "", Under, Whole, 2, 0.002)
		newly    = r(BackendCommit, "", Under, 7, 9, 0.003)
		memory   = r(Memory, "", Under, Whole, 3, 3<<30)
		clock    = r(Clock, "h2", Over, Whole, 1, 9)
		between  = r(RTT, "h3", Between, 50, 5, 0.300)
		slow     = r(RTT, "h3", Over, Whole, 6, 0.700)
		gone     = r(RTT, "h4", Over, 3, 8, lost)
		slowDisk = r(WALFsync, "", Over, 12, 7, 0.030)
		pressed  = r(Memory, "", Over, 2, 7, 1<<30)
		restarts = r(Stability, "", Over, 20, 7, 2)
		missing  = r(BackendCommit, "", Unknown, 0, 4, 0)
		unheard  = r("gpu_heat", "", Over, Whole, 1, 99)
	)
	for _, c := range []struct {
		name     string
		readings []Reading
		want     string
		held     int
		since    int // minutes
	}{
		{"nothing", nil, "unknown", 0, -1}, // the zero value, never fit
		{"nothing that gates", []Reading{clock}, "unknown", 0, -1},
		{"a signal of a newer version", []Reading{rtt, unheard}, "fit", Whole, 1}, // is not judged by what it may mean
		{"all under", []Reading{rtt, wal, memory}, "fit", Whole, 3},               // since the last of them was
		{"one has just become fit", []Reading{rtt, wal, newly}, "fit", 7, 9},      // every reading must have held
		{"clock never gates", []Reading{rtt, clock}, "fit", Whole, 1},
		{"between keeps the vote", []Reading{rtt, between}, "marginal: rtt to h3 p99 300 ms, limit 250 ms", 0, 5},
		{"over", []Reading{slow, rtt}, "unfit: rtt to h3 p99 700 ms, limit 500 ms", Whole, 6},
		{"disk only", []Reading{rtt, slowDisk}, "unfit: wal_fsync p99 30.0 ms, limit 10.0 ms", 12, 7}, // S062: the network is not mentioned
		{"lost", []Reading{gone}, "unfit: rtt to h4 p99 lost, limit 500 ms", 3, 8},
		{"memory", []Reading{pressed}, "unfit: memory 1.0 GiB available, needs 2.0 GiB", 2, 7},
		{"stability", []Reading{restarts}, "unfit: stability: 2 restarts in one sample, limit 0", 20, 7}, // S074
		{"unknown is never fit", []Reading{rtt, missing}, "unknown: backend_commit unknown (have 99 samples, need 100)", 0, 4},
		{"unknown weighs more than between", []Reading{between, missing}, // or a candidate would be called marginal for want of samples
			"unknown: backend_commit unknown (have 99 samples, need 100); rtt to h3 p99 300 ms, limit 250 ms", 0, 4},
		{"a violation is a fact beside what is unknown", []Reading{missing, slow},
			"unfit: rtt to h3 p99 700 ms, limit 500 ms; backend_commit unknown (have 99 samples, need 100)", Whole, 6},
		{"held is the longest of one reading", []Reading{slow, gone, slowDisk}, // two half windows of different signals make no whole one
			"unfit: rtt to h4 p99 lost, limit 500 ms; rtt to h3 p99 700 ms, limit 500 ms; wal_fsync p99 30.0 ms, limit 10.0 ms", Whole, 6},
		{"the fourth reason is counted", []Reading{slow, gone, slowDisk, pressed, between},
			"unfit: memory 1.0 GiB available, needs 2.0 GiB; rtt to h4 p99 lost, limit 500 ms; rtt to h3 p99 700 ms, limit 500 ms; and 2 more", Whole, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge("h1", c.readings)
			if v.String() != c.want || v.Held != c.held || v.Whole != (c.held == Whole) {
				t.Errorf("got %q held %d whole %v, want %q held %d", v, v.Held, v.Whole, c.want, c.held)
			}
			since := t0.Add(time.Duration(c.since) * time.Minute)
			if c.since < 0 {
				since = time.Time{}
			}
			if !v.Since.Equal(since) {
				t.Errorf("since %s, want %s", v.Since, since)
			}
			if (v.Status == StatusUnknown) != (v.Status.String() == "unknown") {
				t.Errorf("status %q", v.Status)
			}
			for range 10 { // the order of the readings does not matter
				rand.Shuffle(len(c.readings), func(i, j int) { c.readings[i], c.readings[j] = c.readings[j], c.readings[i] })
				if got := Judge("h1", c.readings); !cmp.Equal(got, v) {
					t.Fatal(cmp.Diff(v, got))
				}
			}
		})
	}
}

// TestWords: bands and statuses are recorded in files that people keep.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string // as written again, or what the error says
	}{
		{`{"status":"unknown","band":"unknown"}`, `{"status":"unknown","band":"unknown"}`},
		{`{"status":"","band":""}`, `{"status":"unknown","band":"unknown"}`}, // the zero value is unknown
		{`{}`, `{"status":"unknown","band":"unknown"}`},
		{`{"status":"fit","band":"under"}`, `{"status":"fit","band":"under"}`},
		{`{"status":"marginal","band":"between"}`, `{"status":"marginal","band":"between"}`},
		{`{"status":"unfit","band":"over"}`, `{"status":"unfit","band":"over"}`},
		{`{"status":"Fit"}`, `status "Fit" is not known; allowed: unknown, fit, marginal or unfit`},
		{`{"band":"fine"}`, `band "fine" is not known; allowed: unknown, under, between or over`},
		{`{"band":"` + strings.Repeat("x", 1000) + `"}`, `band "` + strings.Repeat("x", 39)}, // cut, not repeated
	} {
		var v struct {
			Status Status `json:"status"`
			Band   Band   `json:"band"`
		}
		err := json.Unmarshal([]byte(c.in), &v)
		got, _ := json.Marshal(v)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), c.want) || len(got) > 200 {
			t.Errorf("%.80s: got %s, want %s", c.in, got, c.want)
		}
	}
}
