package agent

import (
	"slices"
	"strings"
	"sync"
	"time"

	"suffrage/fitness"
)

// maxText bounds error texts in a report.
const maxText = 400

// record is everything that the agent knows. Readers get copies.
type record struct {
	now clock

	mu     sync.Mutex
	seq    uint64
	rings  []*ring // hosts' signals first, then pairs by peer
	probes []*probe
	facts  fitness.Facts
	ticks  fitness.Window // how late the newest ticks were
	ticked int64          // when the newest one was
}

// probe is the state of one probe.
type probe struct {
	fitness.ProbeStatus
	runs uint64
}

func newRecord(now clock) *record {
	r := &record{now: now}
	r.facts.Link.Class = fitness.UnknownLink
	return r
}

// ring makes the ring of a series.
func (r *record) ring(s fitness.Signal, peer string) *ring {
	n := &ring{signal: s, peer: peer}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rings = append(r.rings, n)
	slices.SortStableFunc(r.rings, func(a, b *ring) int { return strings.Compare(a.peer, b.peer) })
	return n
}

// forget drops the rings of a peer. Samples that still come are for nobody.
func (r *record) forget(peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rings = slices.DeleteFunc(r.rings, func(g *ring) bool { return g.peer == peer })
}

// sample adds one sample to a ring, with the error that made it lost or failed
// ("" for one that was measured). It returns how many were lost in a row.
func (r *record) sample(g *ring, value float64, late time.Duration, state fitness.State, err string) int {
	return r.sampleAt(g, r.now(), value, late, state, err)
}

func (r *record) sampleAt(g *ring, at int64, value float64, late time.Duration, state fitness.State, err string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	before := g.run
	g.add(fitness.Sample{Seq: r.seq, At: at, Value: value, Late: late.Seconds(), State: state})
	g.err = clip(err)
	return max(before, g.run)
}

func (r *record) bound(g *ring, b fitness.Bound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.addBound(b)
}

func (r *record) dropBounds(rings ...*ring) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range rings {
		g.bounds = nil
	}
}

// probe makes the state of a probe, broken until it has run.
func (r *record) probe(name string) *probe {
	p := &probe{ProbeStatus: fitness.ProbeStatus{Name: name, Error: "has not run yet"}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probes = append(r.probes, p)
	return p
}

// ran notes how a probe's run ended, and reports whether that is news.
func (r *record) ran(p *probe, took time.Duration, err error) (news bool) {
	text := ""
	if err != nil {
		text = clip(err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.runs == 0 {
		news = err != nil
	} else {
		news = p.OK != (err == nil)
	}
	p.OK, p.Error, p.Seconds = err == nil, text, took.Seconds()
	p.runs++
	return news
}

// hangs notes that a probe's run goes on for too long.
func (r *record) hangs(p *probe, took time.Duration, text string) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news = p.OK || p.runs == 0
	p.OK, p.Error, p.Seconds = false, text, took.Seconds()
	p.runs = max(p.runs, 1)
	return news
}

// tell changes facts.
func (r *record) tell(change func(*fitness.Facts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.facts)
}

func (r *record) tick(late time.Duration) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks.Add(late.Seconds())
	r.ticked = at
}

// report fills in what is known: series with the samples above a sequence
// number, facts, and the time.
func (r *record) report(after uint64) fitness.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := fitness.Report{Version: fitness.ReportVersion, Facts: r.facts, Last: r.seq, Series: make([]fitness.Series, 0, len(r.rings))}
	for _, g := range r.rings {
		out.Series = append(out.Series, g.series(after))
	}
	out.Facts.Paths = slices.Clone(r.facts.Paths)
	if m := r.facts.Member; m != nil {
		c := *m
		out.Facts.Member = &c
	}
	if f := r.facts.Server; f != nil {
		c := *f
		c.Snapshots = slices.Clone(f.Snapshots)
		out.Facts.Server = &c
	}
	out.Facts.Probes = make([]fitness.ProbeStatus, 0, len(r.probes))
	for _, p := range r.probes {
		out.Facts.Probes = append(out.Facts.Probes, p.ProbeStatus)
	}
	// Last of all: no sample may be newer than the report.
	out.Now = r.now()
	return out
}

// waiting names the probes that have not run yet.
func (r *record) waiting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, p := range r.probes {
		if p.runs == 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// clip keeps an error's text printable on one line and bounded.
func clip(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
