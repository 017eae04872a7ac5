package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"suffrage/fitness"
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

const (
	maxSeen  = 300 // what History keeps
	maxShown = 200 // what a Model has
)

// History keeps the changes of decision and of verdicts that this process saw; the
// other events have their times in etcd. Safe for concurrent use.
type History struct {
	mu     sync.Mutex
	events []Event // oldest first
	key    string
	status map[string]fitness.Status
	newest time.Time
}

// Take sees one round.
func (h *History) Take(d membership.Decision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status == nil {
		h.status = map[string]fitness.Status{}
	}
	if !d.At.After(h.newest) {
		return // a look that was overtaken
	}
	h.newest = d.At
	for _, v := range d.Verdicts {
		was, known := h.status[v.Host]
		h.status[v.Host] = v.Status
		if known && was != v.Status {
			h.add(Event{d.At, "verdict", v.Host, fmt.Sprintf("was %s, is %s", was, short(v))})
		}
	}
	if k := d.Key(); k != h.key {
		h.key = k
		h.add(Event{d.At, "decision", "", Headline(d)})
	}
}

// short is a verdict with its first reason.
func short(v fitness.Verdict) string {
	switch n := len(v.Reasons); n {
	case 0, 1:
		return v.String()
	default:
		return fmt.Sprintf("%s: %s; and %d more", v.Status, v.Reasons[0], n-1)
	}
}

func (h *History) add(e Event) {
	if len(h.events) == maxSeen {
		h.events = slices.Delete(h.events, 0, 1)
	}
	h.events = append(h.events, e)
}

// Seen are the events so far, oldest first.
func (h *History) Seen() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// Headline is a decision in one line, without ages.
func Headline(d membership.Decision) string {
	switch d.Kind {
	case membership.Steady:
		return "Nothing needs doing"
	case membership.Planned:
		if d.Mode == membership.Active {
			return "About to " + d.Plan.String()
		}
		return "Would " + d.Plan.String()
	case membership.StepNext:
		what := "goes on"
		if d.Operation.TurnedBack != "" {
			what = "turns back"
		}
		return fmt.Sprintf("%s %s: %s", d.Operation.Title(), what, act(*d.Step))
	}
	var codes []string
	for _, r := range d.Refusals {
		c := string(r.Code)
		if r.Subject != "" {
			c += " (" + r.Subject + ")"
		}
		codes = append(codes, c)
	}
	if n := len(codes); n > 4 {
		codes = append(codes[:3], fmt.Sprintf("and %d more", n-3))
	}
	return "Nothing is done: " + strings.Join(codes, ", ")
}

// act is the next act without its reason, which may have figures in it that change.
func act(a membership.Act) string {
	if a.Verb == membership.Wait {
		return a.Step
	}
	return strings.TrimSpace(string(a.Verb) + " " + a.Host)
}

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
