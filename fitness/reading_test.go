package fitness

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// t0 is when the scripts begin; they print times as the distance from it.
var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// script builds one series and reads it.
type script struct {
	s         Series
	c         Context
	at        time.Time
	seq       uint64
	histogram *Bound
	every     uint64
}

// TestReading runs testdata/*.txt; `go test -run Reading -rewrite` writes what
// is printed back into them. The commands:
//
//	series signal=S [period=3s] [election=5s]   begins anew
//	feed [late=300ms]                           one run per line: "100 20ms", "3 lost", "1 failed",
//	                                            "1 lost after 5s";
//	                                            each sample is one period after the one before
//	until-whole band=over v=600ms               feeds until the band has held whole, says how many it took
//	histogram lo=8ms hi=16ms [n=500] [every=10] a bound with every such sample from here on, or
//	histogram off                               none
//	gap for=10s                                 time passes without samples
//	clock by=-1h                                the agent's clock is set
//	not-before                                  what was fed up to here does not count
//	error [the probe's words]                   the probe fails, or does no more
//	read [after=10s]                            the reading at the newest sample, or some time later
//
// Times are the distance from the start of the script.
func TestReading(t *testing.T) {
	datadriven.Walk(t, "testdata/reading", func(t *testing.T, path string) {
		p := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return p.run(t, d)
		})
	})
}

func (p *script) run(t *testing.T, d *datadriven.TestData) string {
	arg := func(key, missing string) string {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &missing)
		}
		return missing
	}
	span := func(key, missing string) time.Duration {
		v, err := time.ParseDuration(arg(key, missing))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return v
	}
	switch d.Cmd {
	case "series":
		l := DefaultLimits()
		l.ElectionTimeout = Duration(span("election", "5s"))
		signal := Signal(arg("signal", "rtt"))
		peer := ""
		if signal.OfPair() {
			peer = "h2"
		}
		*p = script{at: t0, s: Series{Signal: signal, Peer: peer},
			c: Context{Host: "h1", Period: span("period", "3s"), Limit: l.For(signal, 8<<30)}}
		return fmt.Sprintf("voter %s, candidate %s\n", p.c.Limit.Voter.Text(signal.Unit()), p.c.Limit.Candidate.Text(signal.Unit()))
	case "feed":
		late := span("late", "0s").Seconds()
		for _, line := range strings.Split(d.Input, "\n") {
			count, v, _ := strings.Cut(line, " ")
			n, err := strconv.Atoi(count)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			for range n {
				p.feed(t, d, v, late)
			}
		}
		return p.read(p.at)
	case "until-whole":
		for n := 1; n <= 1000; n++ {
			p.feed(t, d, arg("v", ""), 0)
			if r := Read(p.s, p.context(p.at)); r.Whole() && string(r.Band) == arg("band", "") {
				return fmt.Sprintf("at sample %d: %s", n, p.read(p.at))
			}
		}
		return "not within 1000 samples\n"
	case "histogram":
		p.histogram = nil
		if !d.HasArg("off") {
			n, _ := strconv.ParseUint(arg("n", "500"), 10, 64)
			p.every, _ = strconv.ParseUint(arg("every", "10"), 10, 64)
			p.histogram = &Bound{Lo: Figure(span("lo", "0s").Seconds()), Hi: Figure(span("hi", "0s").Seconds()), N: n}
		}
	case "gap":
		p.at = p.at.Add(span("for", ""))
	case "clock":
		p.at = p.at.Add(span("by", ""))
	case "not-before":
		p.c.NotBefore = p.at
	case "error":
		p.s.Error = d.Input
	case "read":
		return p.read(p.at.Add(span("after", "0s")))
	default:
		d.Fatalf(t, "no command %q", d.Cmd)
	}
	return ""
}

func (p *script) feed(t *testing.T, d *datadriven.TestData, v string, late float64) {
	p.at = p.at.Add(p.c.Period)
	p.seq++
	m := Sample{Seq: p.seq, At: p.at.UnixMicro(), Late: late}
	if v, waited, _ := strings.Cut(v, " after "); v == string(Lost) || v == string(Failed) {
		m.State = State(v)
		if waited != "" {
			m.Value = number(waited)
		}
	} else if m.Value = number(v); m.Value != m.Value {
		d.Fatalf(t, "no sample %q", v)
	}
	p.s.Samples = append(p.s.Samples, m)
	if p.histogram != nil && p.seq%p.every == 0 {
		b := *p.histogram
		b.At = m.At
		p.s.Bounds = append(p.s.Bounds, b)
	}
}

// number reads "20ms", "2.5GiB" or "3"; anything else is NaN.
func number(v string) float64 {
	if d, err := time.ParseDuration(v); err == nil {
		return d.Seconds()
	}
	n, gib := strings.CutSuffix(v, "GiB")
	f, err := strconv.ParseFloat(n, 64)
	switch {
	case err != nil:
		return math.NaN()
	case gib:
		return f * (1 << 30)
	}
	return f
}

func (p *script) context(now time.Time) Context {
	c := p.c
	c.Now = now
	return c
}

// read prints a reading in one line.
func (p *script) read(now time.Time) string {
	r := Read(p.s, p.context(now))
	out := fmt.Sprintf("%s held %d", r.Band, r.Held)
	if r.Whole() {
		out = fmt.Sprintf("%s WHOLE", r.Band)
	}
	out += fmt.Sprintf(" since %s, count %d, figure %s, p50 %s", r.Since.Sub(t0), r.Count, r.Figure.Text(r.Signal.Unit()), r.P50.Text(r.Signal.Unit()))
	if r.Lost+r.LostNow > 0 {
		out += fmt.Sprintf(", lost %d, now %d", r.Lost, r.LostNow)
	}
	if r.Probe != nil {
		out += ", probe " + r.Probe.Text(r.Signal.Unit())
	}
	if b := r.Histogram; b != nil {
		out += fmt.Sprintf(", histogram %s to %s of %d", b.Lo.Text("s"), b.Hi.Text("s"), b.N)
	}
	if r.DecidedBy != "" {
		out += ", by " + r.DecidedBy
	}
	if r.Note != "" {
		out += ": " + r.Note
	}
	return out + "\n"
}
