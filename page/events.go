package page

import (
	"cmp"
	"slices"
	"time"

	"suffrage/membership"
)

// Event is one thing that happened.
type Event struct {
	At time.Time `json:"at"`
	// Kind is decision, verdict, operation, step, mark, pause, membership or controller.
	Kind string `json:"kind"`
	Host string `json:"host,omitempty"`
	Text string `json:"text"`
}

// maxShown is how many events a Model has.
const maxShown = 200

func eventsOf(l Look, m Model, seen []Event) []Event {
	out := append([]Event{}, seen...)
	for _, op := range m.Operations {
		out = append(out, ofOperation(op)...)
	}
	for _, h := range l.Inputs.View.Hosts {
		out = append(out, ofMark(h)...)
	}
	if p := m.Paused; p != nil {
		word := "resumed"
		if p.Value {
			word = "paused: nothing new is started"
		}
		out = append(out, Event{p.At, "pause", "", word + said(*p)})
	}
	if t := l.Inputs.View.MembershipChanged; !t.IsZero() {
		out = append(out, Event{t, "membership", "", "the voters changed"})
	}
	if !m.ControllerSince.IsZero() {
		out = append(out, Event{m.ControllerSince, "controller", m.Controller, "its controller leads from here on"})
	}
	slices.SortStableFunc(out, func(a, b Event) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Host, b.Host))
	})
	return out[:min(len(out), maxShown)]
}

func ofOperation(op membership.Operation) []Event {
	out := []Event{{op.Begun, "operation", "", op.Title() + " begun, asked for by " + op.By}}
	for _, s := range op.Steps {
		text := op.Title() + ": " + s.Name
		if s.Note != "" {
			text += ", held up by: " + s.Note
		}
		out = append(out, Event{s.Begun, "step", "", text})
	}
	if !op.Ended.IsZero() {
		text := op.Title() + " " + string(op.Outcome)
		if op.TurnedBack != "" {
			text += ", because " + op.TurnedBack
		}
		out = append(out, Event{op.Ended, "operation", "", text})
	}
	return out
}

func ofMark(h membership.Host) (out []Event) {
	for _, s := range []struct {
		say     *membership.Say
		yes, no string
	}{{h.Mark.Eligible, "eligible", "ineligible"}, {h.Mark.Pinned, "pinned", "unpinned"}, {h.Mark.Cleared, "its failed swaps are forgiven", ""}} {
		if s.say == nil {
			continue
		}
		word := s.yes
		if !s.say.Value {
			word = s.no
		}
		out = append(out, Event{s.say.At, "mark", h.Name, word + said(*s.say)})
	}
	return out
}

func said(s membership.Say) string {
	text := ", said by " + s.By
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}
