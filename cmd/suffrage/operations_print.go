package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"suffrage/fitness"
)

func (r OperationRecord) outcome() string {
	switch {
	case !r.Open:
		return string(r.Outcome)
	case r.TurnedBack != "":
		return "turning back"
	}
	return "under way"
}

// change is "h3 → h4", "+h4", "-h3", "-h3 (dead)" or "h3 etcd-only".
func (r OperationRecord) change() string {
	switch {
	case r.Regrade != "":
		return r.Regrade + " " + string(r.To)
	case r.Dead:
		return "-" + r.Out + " (dead)"
	case r.Out == "":
		return "+" + r.In
	case r.In == "":
		return "-" + r.Out
	}
	return r.Out + " → " + r.In
}

// worst is how the worst p99 changed, and in words where it did not get better.
func (r OperationRecord) worst() string {
	figure := func(f *fitness.Figure) string {
		if f == nil {
			return "?"
		}
		return f.Text("s")
	}
	if r.WorstBefore == nil && r.WorstAfter == nil {
		return "-"
	}
	s := figure(r.WorstBefore) + " → " + figure(r.WorstAfter)
	if r.WorstLowered != nil && !*r.WorstLowered {
		s += ", NOT lowered"
	}
	return s
}

// took is a length of time: "850 ms", "12.3 s", "3 min 5 s".
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

func (r OperationRecord) print(w io.Writer) {
	fmt.Fprintf(w, "operation %s: %s\n", r.ID, r.outcome())
	rows := [][]string{{"  change", r.change()}, {"  asked by", r.By},
		{"  begun", fmt.Sprintf("%s, took %s", r.Begun.Local().Format("2006-01-02 15:04:05"), took(r.Seconds))},
		{"  cluster", r.ClusterID}, {"  members before", strings.Join(r.MembersBefore, " ")}}
	if r.Open {
		rows[2][1] = fmt.Sprintf("%s, %s so far", r.Begun.Local().Format("2006-01-02 15:04:05"), took(r.Seconds))
	} else {
		rows = append(rows, []string{"  members after", strings.Join(r.MembersAfter, " ")})
	}
	rows = append(rows, []string{"  worst p99", r.worst()})
	if s := r.Snapshot; s != nil {
		rows = append(rows, []string{"  snapshot", fmt.Sprintf("%s on %s, revision %d, %s", s.File, s.Host, s.Revision, bytesText(s.Size))})
	} else {
		rows = append(rows, []string{"  snapshot", "none was taken"})
	}
	table(w, rows)
	if r.Why != "" {
		fmt.Fprintf(w, "\nWhy:\n%s\n", wrapOn(w, r.Why, "  "))
	}
	if r.TurnedBack != "" {
		fmt.Fprintf(w, "\nTurned back:\n%s\n", wrapOn(w, r.TurnedBack, "  "))
	}
	if r.WorstLowered != nil && !*r.WorstLowered {
		fmt.Fprintf(w, "\n%s\n", wrapOn(w, "The worst p99 between voters was not lowered: something else is slow. After two such swaps within a day nothing is swapped any more (futile).", ""))
	}
	r.printSteps(w)
	r.printFigures(w)
}

func (r OperationRecord) printSteps(w io.Writer) {
	if len(r.Steps) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := [][]string{{"STEP", "TOOK", "HELD UP BY"}}
	for _, s := range r.Steps {
		time := took(s.Seconds)
		if s.Ended.IsZero() && r.Open {
			time += " so far"
		}
		note := s.Note
		if note == "" {
			note = "-"
		}
		rows = append(rows, []string{s.Name, time, note})
	}
	table(w, rows)
}

func (r OperationRecord) printFigures(w io.Writer) {
	if len(r.Figures) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := [][]string{{"FIGURE BEFORE", "PEER", "VALUE", "LIMIT"}}
	for _, d := range r.Figures {
		limit, peer := "-", d.Peer
		if d.Limit != nil {
			limit = d.Limit.Text(d.Unit)
		}
		if peer == "" {
			peer = "-"
		}
		rows = append(rows, []string{d.Name, peer, d.Value.Text(d.Unit), limit})
	}
	table(w, rows)
}
