package report

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// played writes a made-up month of five hosts, one moment a minute, in which a
// laptop on Wi-Fi holds a vote: slow every evening, two hosts down for a night,
// a disk that gets worse, a standby that is not always fit.
func played(w io.Writer, days int) (n int) {
	rng := rand.New(rand.NewPCG(1, 2))
	var line []byte
	spread := func(base float64) membership.Reach {
		now := base * (0.8 + 0.4*rng.Float64())
		return membership.Reach{fitness.Figure(float64(int(now*1e6)) / 1e6), fitness.Figure(float64(int(now*(1+rng.ExpFloat64()/4)*1e6)) / 1e6)}
	}
	bad := 0
	buf := bufio.NewWriter(w)
	defer buf.Flush()
	for i := range days * 24 * 60 {
		day, hour := i/1440, i/60%24
		if day == 11 && hour < 7 || day == 20 && hour == 3 { // the controllers were down
			continue
		}
		m := moment(time.Duration(i) * time.Minute)
		m.At = noon.AddDate(0, 0, -1).Add(time.Duration(i) * time.Minute)
		evening := hour >= 18 && hour < 23 && day%7 != 6
		if evening {
			bad++
		} else {
			bad = 0
		}
		for k := range m.Figures {
			m.Figures[k] = spread(map[byte]float64{'r': 0.0018, 'w': 0.0032}[k[0]])
		}
		for a := 1; a <= 5; a++ {
			if a != 3 && evening {
				for _, k := range []string{fmt.Sprintf("rtt h%d h3", a), fmt.Sprintf("rtt h3 h%d", a)} {
					if _, ok := m.Figures[k]; ok {
						m.Figures[k] = spread(0.16)
					}
				}
			}
			m.Figures[fmt.Sprint("backend_commit h", a)] = spread(0.006)
		}
		m.Figures["wal_fsync h2"] = spread(0.004 + 0.0003*float64(day))
		if hour == 4 {
			m.Figures["wal_fsync h5"] = spread(0.014)
			m.Hosts[4].Status, m.Hosts[4].Whole, m.Hosts[4].Reasons = fitness.Unfit, true, []string{"wal_fsync"}
		}
		switch {
		case bad > 10 && day > 3:
			m.Hosts[2].Status, m.Hosts[2].Reasons = fitness.Unfit, []string{"rtt h1", "rtt h2"}
			m.Kind, m.Out, m.In, m.FitVoters, m.Tolerance = membership.Planned, "h3", "h4", 2, 0
		case bad > 10:
			m.Hosts[2].Status, m.Hosts[2].Reasons = fitness.Unfit, []string{"rtt h1", "rtt h2"}
			m.Hosts[3].Mark, m.Hosts[4].Mark = "unmanaged", "unmanaged"
			m.Kind, m.FitVoters, m.Tolerance = membership.Refused, 2, 0
			m.Refusals = []membership.MomentRefusal{{Code: membership.NoCandidate, Kind: membership.Owner}}
		case bad > 0:
			m.Hosts[2].Status, m.Hosts[2].Whole, m.Hosts[2].Reasons = fitness.Marginal, false, []string{"rtt h1"}
			m.Kind = membership.Refused
			m.Refusals = []membership.MomentRefusal{{Code: membership.NotHeld, Kind: membership.Hold, Subject: "h3"}}
		}
		if day == 15 && hour >= 2 && hour < 9 {
			m.Hosts[1] = membership.MomentHost{Host: "h2", Mark: "eligible", Reasons: []string{"memory", "wal_fsync"}}
			m.Kind, m.Out, m.In, m.Tolerance = membership.Refused, "", "", 0
			m.Refusals = []membership.MomentRefusal{{Code: membership.VoterDown, Kind: membership.Owner, Subject: "h2"}}
			for k := range m.Figures {
				if bytes.Contains([]byte(k), []byte("h2")) {
					delete(m.Figures, k)
				}
			}
		}
		line, _ = m.Append(line[:0])
		buf.Write(line)
		n++
	}
	return n
}

// BenchmarkMonth reads a month of five hosts and writes its page:
// docs/performance.md has what it took.
func BenchmarkMonth(b *testing.B) {
	path := filepath.Join(b.TempDir(), "month.jsonl")
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	n := played(out, 30)
	size, _ := out.Seek(0, io.SeekEnd)
	out.Close()
	b.SetBytes(size)
	b.ReportAllocs()
	most := uint64(0)
	for b.Loop() {
		in, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		p, i := New(noon.AddDate(0, 0, -1), noon.AddDate(0, 0, 29)), 0
		for m, err := range Lines(path, in) {
			if err != nil {
				b.Fatal(err)
			}
			p.Add(m)
			if i++; i%1000 == 0 {
				var s runtime.MemStats
				runtime.ReadMemStats(&s)
				most = max(most, s.HeapAlloc)
			}
		}
		in.Close()
		if err := p.Report().HTML(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n), "moments")
	b.ReportMetric(float64(size)/1e6, "MB-read")
	b.ReportMetric(float64(most)/1e6, "MB-heap")
}
