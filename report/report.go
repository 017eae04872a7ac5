package report

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Version is the version of the JSON form of a Report: keys are added, never
// renamed. docs/report.md describes it.
const Version = 1

// Report is what a period came to.
type Report struct {
	Version int       `json:"version"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Recorded and Unknown are the whole period together.
	RecordedSeconds float64 `json:"recorded_seconds"`
	UnknownSeconds  float64 `json:"unknown_seconds"`
	Moments         int     `json:"moments"`
	// Unread are lines that could not be read, Disordered those from before the
	// one that they follow: a clock was set back.
	Unread     int   `json:"unread,omitempty"`
	Disordered int   `json:"disordered,omitempty"`
	Changes    int   `json:"changes"`
	Gaps       []Gap `json:"gaps"` // the longest, by time
	GapCount   int   `json:"gap_count"`
	// Left are hosts, pairs and disks that this report has no room for.
	Left int `json:"left,omitempty"`

	Kinds      []KindSpan      `json:"kinds"`
	Modes      []ModeSpan      `json:"modes"`
	Tolerance  []ToleranceSpan `json:"tolerance"`
	Plans      []MoveSpan      `json:"plans"`
	Operations []OperatedSpan  `json:"operations"`
	Refusals   []RefusedSpan   `json:"refusals"`
	// Asked is for how long any refusal waited for the owner.
	Asked  Span     `json:"asked"`
	Hosts  []Host   `json:"hosts"`
	Series []Series `json:"series"`
	Effect Effect   `json:"effect"`

	kinds []kindColumn
}

// Gap is a time of which nothing is known.
type Gap struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Seconds float64   `json:"seconds"`
}

// Move is a swap that was planned. Out is empty for more voters, In for fewer.
type Move struct {
	Out string `json:"out"`
	In  string `json:"in"`
	// Regrade is the host whose server would become To; nobody votes otherwise then.
	Regrade string        `json:"regrade,omitempty"`
	To      fitness.Grade `json:"to,omitempty"`
}

func (m Move) String() string {
	switch {
	case m.Regrade != "":
		return membership.Plan{Regrade: m.Regrade, To: m.To}.String()
	case m.Out == "":
		return "grow by " + m.In
	case m.In == "":
		return "shrink by " + m.Out
	}
	return "swap " + m.Out + " → " + m.In
}

// Operated is an operation that was under way.
type Operated struct {
	Operation string        `json:"operation"`
	Out       string        `json:"out,omitempty"`
	In        string        `json:"in,omitempty"`
	Regrade   string        `json:"regrade,omitempty"`
	To        fitness.Grade `json:"to,omitempty"`
}

// Refused is a refusal without its figures.
type Refused struct {
	Code    membership.Code        `json:"code"`
	Kind    membership.RefusalKind `json:"kind"`
	Subject string                 `json:"subject,omitempty"`
}

// The spans of all that a period tells apart, those that held longest first.
type (
	KindSpan struct {
		Kind membership.Kind `json:"kind"`
		Span
	}
	ModeSpan struct {
		Mode string `json:"mode"`
		Span
	}
	ToleranceSpan struct {
		Tolerance int `json:"tolerance"`
		Span
	}
	MoveSpan struct {
		Move
		Span
	}
	OperatedSpan struct {
		Operated
		Span
	}
	RefusedSpan struct {
		Refused
		Span
	}
	CodeSpan struct {
		Code membership.Code `json:"code"`
		Span
	}
	ReasonSpan struct {
		Reason string `json:"reason"`
		Span
	}
)

// Host is how a host fared, in seconds per status of its verdict.
type Host struct {
	Host    string       `json:"host"`
	Mark    string       `json:"mark"`
	Voter   Statuses     `json:"voter"`
	Standby Statuses     `json:"standby"`
	Reasons []ReasonSpan `json:"reasons"` // why it was not fit

	strip *[Columns]stripColumn
}

// Statuses are seconds.
type Statuses struct {
	Fit      float64 `json:"fit"`
	Marginal float64 `json:"marginal"`
	Unfit    float64 `json:"unfit"`
	Unknown  float64 `json:"unknown"`
}

func statusesOf(d [len(statuses)]time.Duration) Statuses {
	return Statuses{d[0].Seconds(), d[1].Seconds(), d[2].Seconds(), d[3].Seconds()}
}

// Sum is all of them.
func (s Statuses) Sum() float64 { return s.Fit + s.Marginal + s.Unfit + s.Unknown }

// Series is one pair's or disk's p99 over time.
type Series struct {
	Signal fitness.Signal `json:"signal"`
	Host   string         `json:"host"`
	Peer   string         `json:"peer,omitempty"`
	// Limit is the newest one past which a voter violates.
	Limit        fitness.Figure `json:"limit"`
	KnownSeconds float64        `json:"known_seconds"`
	OverSeconds  float64        `json:"over_seconds"`
	// Median and P95 are the p99 that was not exceeded for half and for 95 % of
	// the known time, rounded up to five percent; Worst is exact.
	Median fitness.Figure `json:"median"`
	P95    fitness.Figure `json:"p95"`
	Worst  fitness.Figure `json:"worst"`
	Points []Point        `json:"points"`

	low, high *[Columns]fitness.Figure
}

// Point is the lowest and the highest p99 of one column; columns of which
// nothing is known have none.
type Point struct {
	At   time.Time      `json:"at"`
	Low  fitness.Figure `json:"low"`
	High fitness.Figure `json:"high"`
}

// Effect is what acting would have changed, as far as it can be told.
type Effect struct {
	Voters []UnfitVoter `json:"voters"`
	// StoodBy is the time in which a voter was unfit for a whole window while a
	// fit candidate stood by; Planned that in which a swap was planned.
	StoodBySeconds float64    `json:"stood_by_seconds"`
	PlannedSeconds float64    `json:"planned_seconds"`
	HeldBy         []CodeSpan `json:"held_by"` // what held it back meanwhile
	Commit         Commit     `json:"commit"`
}

// UnfitVoter is a voter that was unfit for a whole window.
type UnfitVoter struct {
	Host           string  `json:"host"`
	Unfit          Span    `json:"unfit"`
	StoodBySeconds float64 `json:"stood_by_seconds"`
	PlannedSeconds float64 `json:"planned_seconds"`
}

// Commit compares, while a swap was planned, what the slowest voter that a write has
// to wait for would take.
type Commit struct {
	CountedSeconds   float64  `json:"counted_seconds"`
	MissingSeconds   float64  `json:"missing_seconds"`
	LeaderOutSeconds float64  `json:"leader_out_seconds"`
	LoweredSeconds   float64  `json:"lowered_seconds"`
	RaisedSeconds    float64  `json:"raised_seconds"`
	Led              Compared `json:"led"`
	AnyLeader        Compared `json:"any_leader"`
	OneLost          Compared `json:"one_lost"`
}

// Compared are the same figures with the voters as they were and as planned.
type Compared struct {
	Before Shares `json:"before"`
	After  Shares `json:"after"`
}

// Shares are figures not exceeded for half and for 95 % of the time.
type Shares struct {
	Median fitness.Figure `json:"median"`
	P95    fitness.Figure `json:"p95"`
}

// Report ends the period and says what it came to.
func (p *Period) Report() Report {
	p.close()
	r := Report{Version: Version, From: p.from.UTC(), To: p.to.UTC(), RecordedSeconds: p.recorded.Seconds(), UnknownSeconds: p.unknown.Seconds(),
		Moments: p.moments, Disordered: p.disordered, Changes: p.changes, Gaps: p.longestGaps(), GapCount: p.gapCount,
		Left:  len(p.hosts.left) + len(p.series.left),
		Kinds: []KindSpan{}, Modes: []ModeSpan{}, Tolerance: []ToleranceSpan{}, Plans: []MoveSpan{}, Operations: []OperatedSpan{},
		Refusals: []RefusedSpan{}, Hosts: []Host{}, Series: []Series{}, Effect: p.effectReport(), kinds: p.kinds[:]}
	for _, k := range p.spoken.longestFirst(cmp.Compare[membership.Kind]) {
		r.Kinds = append(r.Kinds, KindSpan{k, *p.spoken.of[k]})
	}
	for _, k := range p.modes.longestFirst(strings.Compare) {
		r.Modes = append(r.Modes, ModeSpan{k, *p.modes.of[k]})
	}
	for _, k := range p.tolerance.longestFirst(cmp.Compare[int]) {
		r.Tolerance = append(r.Tolerance, ToleranceSpan{k, *p.tolerance.of[k]})
	}
	for _, k := range p.plans.longestFirst(func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.Out, b.Out), cmp.Compare(a.In, b.In), cmp.Compare(a.Regrade, b.Regrade), cmp.Compare(a.To, b.To))
	}) {
		r.Plans = append(r.Plans, MoveSpan{k, *p.plans.of[k]})
	}
	for _, k := range p.operations.longestFirst(func(a, b Operated) int { return cmp.Compare(a.Operation, b.Operation) }) {
		r.Operations = append(r.Operations, OperatedSpan{k, *p.operations.of[k]})
	}
	for _, k := range p.refusals.longestFirst(func(a, b Refused) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Kind, b.Kind))
	}) {
		r.Refusals = append(r.Refusals, RefusedSpan{k, *p.refusals.of[k]})
	}
	if s := p.refusals.rest; s != nil {
		r.Refusals = append(r.Refusals, RefusedSpan{Refused{Code: "others"}, *s})
	}
	if s := p.asked.of[true]; s != nil {
		r.Asked = *s
	}
	for _, name := range p.hosts.sorted() {
		r.Hosts = append(r.Hosts, p.host(name))
	}
	for _, k := range p.series.worstFirst() {
		r.Series = append(r.Series, p.seriesReport(k))
	}
	return r
}

func (p *Period) longestGaps() []Gap {
	gaps := slices.Clone(p.gaps)
	slices.SortStableFunc(gaps, func(a, b Gap) int { return cmp.Compare(b.Seconds, a.Seconds) })
	gaps = gaps[:min(len(gaps), maxGaps)]
	slices.SortFunc(gaps, func(a, b Gap) int { return a.From.Compare(b.From) })
	for i := range gaps {
		gaps[i].From, gaps[i].To = gaps[i].From.UTC(), gaps[i].To.UTC()
	}
	return append([]Gap{}, gaps...)
}

// maxReasons bounds the reasons told of one host.
const maxReasons = 20

func (p *Period) host(name string) Host {
	s := p.hosts.of[name]
	h := Host{Host: name, Mark: s.mark, Voter: statusesOf(s.voter), Standby: statusesOf(s.standby), Reasons: []ReasonSpan{}, strip: &s.strip}
	for _, k := range s.reasons.longestFirst(strings.Compare) {
		if len(h.Reasons) == maxReasons {
			break
		}
		h.Reasons = append(h.Reasons, ReasonSpan{k, *s.reasons.of[k]})
	}
	return h
}

func (p *Period) seriesReport(k seriesKey) Series {
	s := p.series.of[k]
	out := Series{Signal: k.signal, Host: k.a, Peer: k.b, Limit: s.limit, KnownSeconds: s.total.Seconds(), OverSeconds: s.over.Seconds(),
		Median: s.at(0.5), P95: s.at(0.95), Worst: s.worst, Points: []Point{}, low: &s.low, high: &s.high}
	for c := range s.low {
		if !math.IsNaN(float64(s.low[c])) {
			at := p.from.Add(time.Duration(float64(p.to.Sub(p.from)) * float64(c) / Columns))
			out.Points = append(out.Points, Point{at.UTC().Truncate(time.Second), s.low[c], s.high[c]})
		}
	}
	return out
}
