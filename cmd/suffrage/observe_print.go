package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/observe"
)

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printObserved prints a report in at most 80 columns.
func printObserved(w io.Writer, r observe.Report) {
	voters, learners := 0, 0
	for _, m := range r.Members {
		if m.Role == "learner" {
			learners++
		} else {
			voters++
		}
	}
	fmt.Fprintf(w, "cluster %s: %s, %s; observed for %s\n", r.ClusterID, count(voters, "voter"), count(learners, "learner"), r.For)
	if r.Error != "" {
		fmt.Fprintln(w, wrap("NO QUORUM: "+r.Error+". The list below is what one member has in its own store.", ""))
	}
	fmt.Fprintln(w)
	table(w, memberRows(r))
	fmt.Fprintf(w, "\nround trip from here, and etcd's own disk figures over the run (p99):\n")
	table(w, measuredRows(r))
	fmt.Fprintln(w)
	fmt.Fprintln(w, wrap(timingText(r), ""))
	if r.LeaderChanges > 0 {
		fmt.Fprintln(w, wrap(fmt.Sprintf("the Raft term grew by %d during the run: there was an election", r.LeaderChanges), ""))
	}
	if r.Downgrade == nil && r.Error == "" {
		fmt.Fprintln(w, "whether a downgrade is open: not told (etcd before 3.6)")
	}
	printTroubles(w, r.Troubles)
	printRefusals(w, r.Refusals)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func memberRows(r observe.Report) [][]string {
	rows := [][]string{{"MEMBER", "ROLE", "VERSION", "DB/QUOTA", "LAG", "LIST", "ALARM"}}
	for _, m := range r.Members {
		role := m.Role
		if m.Leader {
			role = "leader"
		}
		if !m.Responding && m.Role != "unstarted" {
			role += "!"
		}
		rows = append(rows, []string{short(m.Label()), role, or(m.Version, "–"), database(m), lag(m), m.List, alarms(r.Alarms, m.ID)})
	}
	return rows
}

func measuredRows(r observe.Report) [][]string {
	rows := [][]string{{"MEMBER", "ROUND TRIP p50/p99", "SAMPLES", "WAL FSYNC", "COMMIT"}}
	for _, m := range r.Members {
		rows = append(rows, []string{short(m.Label()), trip(m.RoundTrip), samples(m.RoundTrip), disk(m.WALFsync), disk(m.BackendCommit)})
	}
	return rows
}

// short keeps both ends of a long name: K3s appends what tells two apart.
func short(s string) string {
	if r := []rune(s); len(r) > 15 {
		return string(r[:6]) + "…" + string(r[len(r)-8:])
	}
	return s
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func database(m observe.Member) string {
	if m.Version == "" {
		return "–"
	}
	quota := "not told"
	if m.Quota > 0 {
		quota = bytesText(m.Quota)
	}
	return bytesText(m.DBSize) + "/" + quota
}

func bytesText(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1fGiB", float64(n)/(1<<30))
	}
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%dKiB", n>>10)
	case n >= 100<<20:
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
}

func lag(m observe.Member) string {
	if m.Lag == nil {
		return "–"
	}
	return strconv.FormatUint(*m.Lag, 10)
}

func alarms(all []membership.Alarm, id string) string {
	var kinds []string
	for _, a := range all {
		if a.Member == id {
			kinds = append(kinds, a.Kind)
		}
	}
	return or(strings.Join(slices.Compact(kinds), "+"), "none")
}

func trip(t observe.RoundTrip) string {
	figure := func(f *fitness.Figure) string {
		if f == nil {
			return "–"
		}
		return f.Text("s")
	}
	if t.Count == 0 {
		return "–"
	}
	return figure(t.P50) + "/" + figure(t.P99)
}

func samples(t observe.RoundTrip) string {
	s := strconv.Itoa(t.Count)
	if t.Lost > 0 {
		s += fmt.Sprintf(", %d lost", t.Lost)
	}
	return s
}

// disk is a figure with what may be said of it; the limits stand below the table.
func disk(d observe.Disk) string {
	switch d.Says {
	case observe.Passes:
		return "≤ " + edge(d.Hi)
	case observe.Fails:
		return "≥ " + edge(d.Lo) + " fails"
	case observe.CannotSay:
		return fmt.Sprintf("%s–%s ?", strings.TrimSuffix(edge(d.Lo), " ms"), edge(d.Hi))
	case observe.TooFew:
		return fmt.Sprintf("only %d", d.Count)
	}
	return "–"
}

// edge is an edge of a bucket: etcd's are 1 ms·2^n, so whole milliseconds below
// a second; the last one has no upper edge, and its lower one is 8.2 s.
func edge(f fitness.Figure) string {
	if f >= 1 {
		return strconv.FormatFloat(float64(f), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(float64(f)*1000, 'f', -1, 64) + " ms"
}

func timingText(r observe.Report) string {
	from := map[string]string{"read": "read from the members' metrics", "given": "as given", "assumed": "assumed, since no member tells: check it and give --election-timeout"}[r.ElectionTimeoutFrom]
	e := r.ElectionTimeout.Std()
	text := fmt.Sprintf("election timeout %v (%s): round trips between voters may reach %v, a new voter's %v.", e, from, e/10, e/20)
	fsync, commit := observe.Disk{}, observe.Disk{}
	unsure, few := false, false
	for _, m := range r.Members {
		fsync, commit = m.WALFsync, m.BackendCommit
		for _, d := range []observe.Disk{m.WALFsync, m.BackendCommit} {
			unsure = unsure || d.Says == observe.CannotSay
			few = few || d.Says == observe.TooFew
		}
	}
	text += fmt.Sprintf(" WAL fsync fails from %s, commit from %s.", edge(fsync.Limit), edge(commit.Limit))
	if unsure {
		text += ` "?": cannot say; the p99 lies in a bucket of etcd's histogram that the limit splits, and only a probe on that disk tells.`
	}
	if few {
		text += ` "only N": N writes in the run; 100 are needed for a p99: observe for longer.`
	}
	return text
}

func printTroubles(w io.Writer, troubles []etcd.Trouble) {
	if len(troubles) == 0 {
		return
	}
	fmt.Fprintf(w, "\nwhat could not be read:\n")
	for _, t := range troubles {
		fmt.Fprintln(w, wrap(t.String(), "  "))
		fmt.Fprintln(w, wrap("→ "+t.Next, "    "))
	}
}

func printRefusals(w io.Writer, refusals []membership.Refusal) {
	if len(refusals) == 0 {
		fmt.Fprintln(w, "\n"+wrap("Seen from outside, no guard would refuse to move a vote now. Not seen from here: the hosts' own disks and memory, round trips between them, the owner's marks; agents measure those.", ""))
		return
	}
	fmt.Fprintf(w, "\na vote would not be moved now:\n")
	for _, r := range refusals {
		fmt.Fprintln(w, wrap(r.String(), "  "))
		fmt.Fprintln(w, wrap("→ "+r.Next, "    "))
	}
}
