package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/page"
)

// picture is which of its pictures a screen shows.
type picture int

const (
	pageFleet picture = iota
	pageHost
	pageDecision
	pageOperations
	pageHelp
)

var pageNames = map[picture]string{pageFleet: "fleet", pageHost: "host", pageDecision: "decision", pageOperations: "operations", pageHelp: "keys"}

// screen is what top shows. It knows no terminal: keys and looks go in, lines
// come out.
type screen struct {
	from    *fleet
	colours bool

	page   picture
	host   string // the one that is chosen, by name: rows move
	scroll int
	height int // of the last picture

	look   look
	status Status
	at     time.Time // of the look; zero before the first
	err    error     // of the newest try, which may be younger than the look
}

// take keeps a look. One that failed leaves the picture, and says so.
func (s *screen) take(l seen) {
	s.err = l.err
	if l.err != nil {
		return
	}
	s.look, s.at = l.look, l.at
	s.status = s.from.status(l.look)
	if s.chosen() < 0 && len(s.status.Hosts) > 0 {
		s.host = s.status.Hosts[0].Host
	}
}

// chosen is the row of the host that is chosen, -1 for none.
func (s *screen) chosen() int {
	for i, h := range s.status.Hosts {
		if h.Host == s.host {
			return i
		}
	}
	return -1
}

func (s *screen) press(k key) {
	step := map[key]int{keyUp: -1, keyDown: 1, keyPageUp: -s.height, keyPageDown: s.height}[k]
	switch k {
	case keyUp, keyDown, keyPageUp, keyPageDown:
		if hosts := s.status.Hosts; s.page == pageFleet && len(hosts) > 0 {
			s.host = hosts[min(max(s.chosen()+step, 0), len(hosts)-1)].Host
			return
		}
		s.scroll = max(s.scroll+step, 0)
		return
	case keyEnter:
		if s.page == pageFleet && s.host != "" {
			s.page = pageHost
		}
	case keyFleet:
		s.page = pageFleet
	case keyDecision:
		s.page = pageDecision
	case keyOperations:
		s.page = pageOperations
	case keyHelp:
		s.page = pageHelp
	}
	s.scroll = 0
}

// Rows of the picture that are not the page's: the title, and the keys.
const frame = 3

// lines are the picture: exactly height of them where there is room for any.
func (s *screen) lines(width, height int, now time.Time) []string {
	title := "suffrage top: " + pageNames[s.page]
	if s.page == pageHost {
		title += " " + s.host
	}
	body := s.body(now)
	room := max(height-frame, 1)
	s.height = room
	at := 0
	if s.page == pageFleet {
		// The chosen row stays in sight.
		for i, l := range body {
			if strings.HasPrefix(l, mark) {
				at = max(0, i-room+2)
			}
		}
	} else {
		s.scroll = min(s.scroll, max(0, len(body)-room))
		at = s.scroll
	}
	out := []string{s.paint(bold, crop(title+"  "+s.age(now), width)), ""}
	for i := range room {
		line := ""
		if at+i < len(body) {
			line = s.row(crop(body[at+i], width))
		}
		out = append(out, line)
	}
	keys := "↑↓ choose  enter host  d decision  o operations  r now  ? keys  q quit"
	if s.page != pageFleet {
		keys = "↑↓ scroll  f fleet  d decision  o operations  r now  ? keys  q quit"
	}
	if left := len(body) - at - room; left > 0 {
		keys = fmt.Sprintf("(%d more lines)  ", left) + keys
	}
	out = append(out, s.paint(bold, crop(keys, width)))
	return out[:min(len(out), max(height, 1))]
}

// age says how old the picture is, and why there is no newer one.
func (s *screen) age(now time.Time) string {
	switch {
	case s.err != nil && s.at.IsZero():
		return "no look yet: " + s.err.Error()
	case s.err != nil:
		return fmt.Sprintf("looked %s, not since: %v", ago(s.at, now), s.err)
	case s.at.IsZero():
		return "looking"
	}
	return "looked " + ago(s.at, now)
}

func (s *screen) body(now time.Time) []string {
	var b bytes.Buffer
	switch {
	case s.page == pageHelp:
		b.WriteString(newTopCmd().Long + "\n")
	case s.at.IsZero():
	case s.page == pageHost:
		explain(s.look, s.host).print(&b)
	case s.page == pageDecision:
		showPlan(&b, s.look.d, now)
	case s.page == pageOperations:
		s.operations(&b, now)
	default:
		s.fleet(&b, now)
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

func (s *screen) operations(w io.Writer, now time.Time) {
	open := s.look.in.Open
	if open != nil {
		recordOf(*open, now).print(w)
		fmt.Fprintln(w)
	}
	if len(s.look.in.Operations) == 0 {
		fmt.Fprintln(w, "no operation has ended yet")
		return
	}
	rows := [][]string{{"ID", "OUTCOME", "CHANGE", "BEGAN", "TOOK", "WORST P99", "BY"}}
	for _, op := range s.look.in.Operations {
		r := recordOf(op, now)
		rows = append(rows, []string{r.ID, r.outcome(), r.change(), ago(r.Begun, now), took(r.Seconds), r.worst(), r.By})
	}
	table(w, rows)
}

// mark is before the host that is chosen.
const mark = "> "

func (s *screen) fleet(w io.Writer, now time.Time) {
	st := s.status
	fmt.Fprintf(w, "%s; etcd leader %s; mode %s\n", st.count(), cmp.Or(st.Leader, "not known"), st.Mode)
	switch {
	case st.Controller != nil:
		fmt.Fprintf(w, "controller on %s leads since %s\n\n", st.Controller.Host, ago(st.Controller.Since, now))
	default:
		fmt.Fprintf(w, "controller: %s\n\n", st.ControllerNote)
	}
	rows := [][]string{{"  HOST", "ROLE", "MARK", "VERDICT", "SINCE", "WORST RTT", "FSYNC", "COMMIT", "MEMORY", "RESTARTS"}}
	for _, h := range st.Hosts {
		before := "  "
		if h.Host == s.host {
			before = mark
		}
		row := []string{before + h.Host, besides(h.Role, h.Grade), st.mark(h), h.Verdict.Status.String(), cmp.Or(stood(h.Verdict, now), "-")}
		for _, sig := range []fitness.Signal{fitness.RTT, fitness.WALFsync, fitness.BackendCommit, fitness.Memory, fitness.Stability} {
			row = append(row, s.figure(h.Verdict, sig))
		}
		rows = append(rows, row)
	}
	table(w, rows)
	fmt.Fprintln(w)
	headline(w, st.Decision, now)
}

// figure is the worst that a host has of a signal, as its own readings and those
// of its peers' ways to it say; "!" where it is why the host is unfit, "?" where no
// window is full. That a pair is slow is the fault of one end, mostly: the other
// gets no "!".
func (s *screen) figure(v fitness.Verdict, sig fitness.Signal) string {
	worst := page.WorstReading(s.look.in.Readings, v.Host, sig)
	if worst == nil {
		return "?"
	}
	text := worst.Figure.Text(sig.Unit())
	if slices.ContainsFunc(v.Reasons, func(r fitness.Reason) bool { return r.Signal == sig && r.Band == fitness.Over }) {
		text += "!"
	}
	return text
}

// The looks of a line. Where colours are not wanted there are none of these.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// row paints a line of a table by the word that one of its columns has anyway.
func (s *screen) row(line string) string {
	column := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, "  "+w+"  ") })
	}
	switch {
	case column("unfit", "over"):
		return s.paint(red, line)
	case column("marginal", "unknown", "between"):
		return s.paint(yellow, line)
	case strings.HasPrefix(line, mark):
		return s.paint(bold, line)
	}
	return line
}

func (s *screen) paint(look, line string) string {
	if !s.colours || line == "" {
		return line
	}
	return look + line + plain
}

// crop makes a line fit, without what a terminal would take for an order: some of
// it comes from other machines.
func crop(line string, width int) string {
	var b strings.Builder
	n := 0
	for _, r := range line {
		if n == width {
			break
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			r = ' '
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
