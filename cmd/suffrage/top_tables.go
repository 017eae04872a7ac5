package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/page"
)

// mark is before the row that is chosen.
const mark = "> "

// chosen puts the mark before the row that is chosen.
func chosen(is bool, cell string) string {
	if is {
		return mark + cell
	}
	return "  " + cell
}

// records are those that the page of operations lists.
func (s *screen) records(now time.Time) []OperationRecord {
	return records(s.look.in.Open, s.look.in.Operations, now)
}

// list is what `suffrage operations list` shows.
func (s *screen) list(w *sheet, now time.Time) {
	all := s.records(now)
	if s.look.in.Open == nil && len(all) == 0 {
		fmt.Fprintln(w, "no operation has ended yet")
		return
	}
	rows := operationRows(all, now)
	rows[0][0] = "  " + rows[0][0]
	for i, r := range all {
		rows[i+1][0] = chosen(r.ID == s.operation, r.ID)
	}
	s.table(w, rows, 6, 4, 3)
}

// record is what `suffrage operations show` shows.
func (s *screen) record(w *sheet, now time.Time) {
	for _, r := range s.records(now) {
		if r.ID == s.operation {
			r.print(w)
			return
		}
	}
	fmt.Fprintf(w, "operation %s is not among the newest any more: suffrage operations show %[1]s\n", s.operation)
}

// table leaves out columns that there is no room for, and says so.
func (s *screen) table(w *sheet, rows [][]string, spare ...int) {
	rows, left := fit(rows, w.width, spare...)
	table(w, rows)
	if len(left) > 0 {
		fmt.Fprintln(w, wrapOn(w, "no room for "+strings.Join(left, ", ")+": enter shows all, or a wider terminal", "  "))
	}
}

// figureColumns are the signals that the fleet's table has a column for, as they are headed.
var figureColumns = []struct {
	signal  fitness.Signal
	heading string
}{{fitness.RTT, "WORST RTT"}, {fitness.WALFsync, "FSYNC"}, {fitness.BackendCommit, "COMMIT"}, {fitness.Memory, "MEMORY"}, {fitness.Stability, "RESTARTS"}}

// What of the fleet's table may go where there is no room: figures only where all of
// them are within their limits.
const (
	markColumn, sinceColumn = 2, 4
	firstFigure             = 5
)

func (s *screen) fleet(w *sheet, now time.Time) {
	st := s.status
	fmt.Fprintf(w, "%s; etcd leader %s; mode %s\n", st.count(), cmp.Or(st.Leader, "not known"), st.Mode)
	switch {
	case st.Controller != nil:
		fmt.Fprintf(w, "controller on %s leads since %s\n", st.Controller.Host, ago(st.Controller.Since, now))
	default:
		fmt.Fprintf(w, "controller: %s\n", st.ControllerNote)
	}
	st.printRequest(w, now)
	if op := st.Decision.Operation; op != nil && st.Decision.Step == nil {
		fmt.Fprintf(w, "under way: %s (operation %s, begun %s), and held up\n", op.Title(), op.ID, ago(op.Begun, now))
	}
	fmt.Fprintln(w)
	rows := [][]string{{"  HOST", "ROLE", "MARK", "VERDICT", "SINCE"}}
	for _, c := range figureColumns {
		rows[0] = append(rows[0], c.heading)
	}
	blamed := map[int]bool{}
	for _, h := range st.Hosts {
		row := []string{chosen(h.Host == s.host, h.Host), besides(h.Role, h.Grade), st.mark(h), h.Verdict.Status.String(), cmp.Or(stood(h.Verdict, now), "-")}
		for _, c := range figureColumns {
			figure := s.figure(h.Verdict, c.signal)
			blamed[len(row)] = blamed[len(row)] || strings.HasSuffix(figure, "!")
			row = append(row, figure)
		}
		rows = append(rows, row)
	}
	var spare []int
	for _, column := range []int{firstFigure + 4, sinceColumn, markColumn, firstFigure + 2, firstFigure + 3, firstFigure + 1, firstFigure} {
		if !blamed[column] {
			spare = append(spare, column)
		}
	}
	s.table(w, rows, spare...)
	fmt.Fprintln(w)
	headline(w, st.Decision, now)
	printWarnings(w, st.Decision)
	st.printReasons(w)
}

// figure is the worst that a host has of a signal, as its own readings and those
// of its peers' ways to it say; "!" where it is why the host is unfit, "?" where no
// window is full. That a pair is slow is the fault of one end, mostly: the other
// gets no "!".
func (s *screen) figure(v fitness.Verdict, sig fitness.Signal) string {
	worst := page.WorstReading(s.look.in.Readings, v.Host, sig)
	blamed := slices.ContainsFunc(v.Reasons, func(r fitness.Reason) bool { return r.Signal == sig && r.Band == fitness.Over })
	if worst == nil {
		if blamed {
			return "?!"
		}
		return "?"
	}
	text := worst.Figure.Text(sig.Unit())
	if blamed {
		text += "!"
	}
	return text
}
