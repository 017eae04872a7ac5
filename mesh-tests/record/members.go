package record

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"suffrage/membership"
)

// Members is one member list, as a quorum had it.
type Members struct {
	// At is when it was first asked for, Until when it was asked for last and was
	// still the same; since the recording began.
	At      time.Duration `json:"at"`
	Until   time.Duration `json:"until"`
	Cluster string        `json:"cluster"`
	// Voters and Learners are names of hosts, and the peer URL of who has not
	// started yet; sorted.
	Voters   []string `json:"voters"`
	Learners []string `json:"learners,omitempty"`
}

// same reports whether two lists differ in nothing but their times.
func (m Members) same(o Members) bool {
	return m.Cluster == o.Cluster && slices.Equal(m.Voters, o.Voters) && slices.Equal(m.Learners, o.Learners)
}

// KeepMembers adds a list to those that were seen, each once for as long as it stays.
func KeepMembers(seen []Members, m Members) []Members {
	if n := len(seen); n > 0 && seen[n-1].same(m) {
		seen[n-1].Until = m.At
		return seen
	}
	m.Until = m.At
	return append(seen, m)
}

// blink is how long nobody may have looked for two lists to count as neighbours.
// Between two votes of one operation lies its soak, three seconds here, and
// between two operations a learner has to catch up.
const blink = time.Second

// judgeMembers looks at every member list that was seen, for what no
// membership may ever be, and at each beside the one before.
func (r *Recording) judgeMembers() error {
	if len(r.Members) == 0 {
		return errors.New("no member list was seen: nothing was proven")
	}
	var errs []error
	var clusters []string
	said := map[string]bool{}
	once := func(at time.Duration, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if !said[text] {
			said[text] = true
			errs = append(errs, fmt.Errorf("%v: %s", at.Round(time.Millisecond), text))
		}
	}
	for i, m := range r.Members {
		// A list that stays is judged by the rules of its end too.
		for _, at := range []time.Duration{m.At, m.Until} {
			if least, most := r.Rules.voters(at); len(m.Voters) < least || len(m.Voters) > most {
				once(at, "%d voters, allowed: %d to %d: %v", len(m.Voters), least, most, m.Voters)
			}
		}
		if len(m.Learners) > 1 {
			once(m.At, "%d learners: %v", len(m.Learners), m.Learners)
		}
		if i > 0 && r.Members[i-1].Cluster == m.Cluster {
			r.judgeChange(r.Members[i-1], m, once)
		}
		if n := len(clusters); n == 0 || clusters[n-1] != m.Cluster {
			if slices.Contains(clusters, m.Cluster) {
				once(m.At, "cluster %s is back: two clusters answer", m.Cluster)
			}
			clusters = append(clusters, m.Cluster)
		}
	}
	if len(clusters) > r.Rules.Clusters {
		errs = append(errs, fmt.Errorf("%d clusters, allowed: %d: %v", len(clusters), r.Rules.Clusters, clusters))
	}
	return errors.Join(errs...)
}

// judgeChange looks at what became of the votes from one list to the next: one at
// a time, and each as an operation of the journal has it.
func (r *Recording) judgeChange(before, after Members, say func(time.Duration, string, ...any)) {
	given, taken := without(after.Voters, before.Voters), without(before.Voters, after.Voters)
	if len(given)+len(taken) > 1 && after.At-before.Until <= blink {
		say(after.At, "two votes changed at once: %v, before %v", after.Voters, before.Voters)
	}
	for _, host := range given {
		if !r.some(func(op membership.Operation) bool { return op.In == host }) {
			say(after.At, "%s got a vote, and no operation gave it: %v", host, after.Voters)
		}
	}
	for _, host := range taken {
		if !r.some(func(op membership.Operation) bool {
			return op.Out == host && op.Outcome != membership.Undone || op.In == host && op.Outcome != membership.Completed
		}) {
			say(after.At, "%s lost its vote, and no operation took it: %v", host, after.Voters)
		}
	}
}

// without are those of some that are not among others.
func without(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(s string) bool { return slices.Contains(others, s) })
}

// some reports whether one of the operations is so, the open one too.
func (r *Recording) some(is func(membership.Operation) bool) bool {
	return slices.ContainsFunc(r.Operations, is) || r.Open != nil && is(*r.Open)
}

// membersAt are the list that was there at a time, and the one before it.
func (r *Recording) membersAt(at time.Duration) []Members {
	n := 0
	for n < len(r.Members) && r.Members[n].At <= at {
		n++
	}
	return r.Members[max(n-2, 0):n]
}
