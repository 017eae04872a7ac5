package report

import (
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// effect is what acting would have changed, as far as moments can tell.
type effect struct {
	unfit    spans[string] // a voter, unfit for a whole window
	stoodBy  spans[string] // the same while a fit candidate stood by
	planned  spans[string] // the same while a plan would have taken its vote
	waiting  spans[bool]   // any of the second
	acted    spans[bool]   // any of the third
	heldBy   spans[membership.Code]
	counted  time.Duration
	missing  time.Duration // a plan stood, and a figure was not known
	led      [2]weights    // as the voters were, as they would have been
	any      [2]weights
	lost     [2]weights
	lowered  time.Duration // of counted: the last figure would have been lower
	raised   time.Duration
	afterOut time.Duration // of counted: the one to go led
}

func (e *effect) hold(m *membership.Moment, from, to time.Time, after bool) {
	var unfit, stoodBy, planned []string
	candidate := false
	for i := range m.Hosts {
		h := &m.Hosts[i]
		switch votes := slices.Contains(m.Voters, h.Host); {
		case votes && h.Status == fitness.Unfit && h.Whole:
			unfit = append(unfit, h.Host)
		case !votes && h.Status == fitness.Fit && h.Whole && h.Mark == "eligible":
			candidate = true
		}
	}
	if candidate {
		stoodBy = unfit
	}
	if m.Kind == membership.Planned && m.Out != "" && m.In != "" {
		planned = []string{m.Out}
	}
	var held []membership.Code
	var waiting, acted []bool
	if len(stoodBy) > 0 {
		waiting = []bool{true}
		if m.Kind == membership.Refused {
			for _, r := range m.Refusals {
				held = append(held, r.Code)
			}
		}
	}
	if len(planned) > 0 {
		acted = []bool{true}
		e.compare(m, to.Sub(from))
	}
	e.unfit.hold(unfit, from, to, after)
	e.stoodBy.hold(stoodBy, from, to, after)
	e.planned.hold(planned, from, to, after)
	e.waiting.hold(waiting, from, to, after)
	e.acted.hold(acted, from, to, after)
	e.heldBy.hold(held, from, to, after)
}

// compare asks what a write would wait for as the voters are, and with the plan's.
func (e *effect) compare(m *membership.Moment, d time.Duration) {
	before, ok := commitOf(m, m.Voters, m.Leader)
	leader := m.Leader
	if leader == m.Out {
		leader = ""
	}
	after, too := commitOf(m, instead(m.Voters, m.Out, m.In), leader)
	if !ok || !too || m.Leader == "" {
		e.missing += d
		return
	}
	e.counted += d
	if leader == "" {
		e.afterOut += d
	}
	for i, c := range []commit{before, after} {
		e.led[i].add(c.led, d)
		e.any[i].add(c.any, d)
		e.lost[i].add(c.lost, d)
	}
	switch {
	case after.lost < before.lost:
		e.lowered += d
	case after.lost > before.lost:
		e.raised += d
	}
}

func (p *Period) effectReport() Effect {
	e := &p.effect
	out := Effect{
		Voters: []UnfitVoter{}, HeldBy: []CodeSpan{},
		StoodBySeconds: e.waiting.total().Seconds(), PlannedSeconds: e.acted.total().Seconds(),
		Commit: Commit{CountedSeconds: e.counted.Seconds(), MissingSeconds: e.missing.Seconds(), LeaderOutSeconds: e.afterOut.Seconds(),
			LoweredSeconds: e.lowered.Seconds(), RaisedSeconds: e.raised.Seconds(),
			Led: compared(&e.led), AnyLeader: compared(&e.any), OneLost: compared(&e.lost)},
	}
	for _, host := range e.unfit.longestFirst(strings.Compare) {
		v := UnfitVoter{Host: host, Unfit: *e.unfit.of[host]}
		if s := e.stoodBy.of[host]; s != nil {
			v.StoodBySeconds = s.Seconds
		}
		if s := e.planned.of[host]; s != nil {
			v.PlannedSeconds = s.Seconds
		}
		out.Voters = append(out.Voters, v)
	}
	for _, c := range e.heldBy.longestFirst(func(a, b membership.Code) int { return strings.Compare(string(a), string(b)) }) {
		out.HeldBy = append(out.HeldBy, CodeSpan{Code: c, Span: *e.heldBy.of[c]})
	}
	return out
}

func compared(w *[2]weights) Compared {
	return Compared{Before: Shares{w[0].at(0.5), w[0].at(0.95)}, After: Shares{w[1].at(0.5), w[1].at(0.95)}}
}
