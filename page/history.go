package page

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// maxSeen is how many events History keeps.
const maxSeen = 300

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
