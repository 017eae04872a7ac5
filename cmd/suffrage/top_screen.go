package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// picture is which of its pictures a screen shows.
type picture int

const (
	pageFleet picture = iota
	pageHost
	pageDecision
	pageOperations
	pageOperation
	pageHelp
)

var pageNames = map[picture]string{pageFleet: "fleet", pageHost: "host", pageDecision: "decision", pageOperations: "operations", pageOperation: "operation", pageHelp: "keys"}

// screen is what top shows. It knows no terminal: keys and looks go in, lines
// come out.
type screen struct {
	from    *fleet
	colours bool

	page      picture
	host      string // the one that is chosen, by name: rows move
	operation string // the same, by ID
	scroll    int    // rows beyond the one that is chosen, or from the top
	height    int    // of the last picture

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
	s.keepChoice(s.hosts(), &s.host)
	s.keepChoice(s.operationIDs(), &s.operation)
}

func (s *screen) keepChoice(all []string, chosen *string) {
	if !slices.Contains(all, *chosen) && len(all) > 0 {
		*chosen = all[0]
	}
}

func (s *screen) hosts() (names []string) {
	for _, h := range s.status.Hosts {
		names = append(names, h.Host)
	}
	return names
}

func (s *screen) operationIDs() (ids []string) {
	for _, r := range s.records(s.at) {
		ids = append(ids, r.ID)
	}
	return ids
}

// choice is what can be chosen on the page, and what is; nil where nothing can be.
func (s *screen) choice() (all []string, chosen *string) {
	switch s.page {
	case pageFleet:
		return s.hosts(), &s.host
	case pageOperations:
		return s.operationIDs(), &s.operation
	}
	return nil, nil
}

func (s *screen) press(k key) {
	switch k {
	case keyUp, keyDown, keyPageUp, keyPageDown:
		s.move(map[key]int{keyUp: -1, keyDown: 1, keyPageUp: -s.height, keyPageDown: s.height}[k])
		return
	case keyEnter:
		switch {
		case s.page == pageFleet && s.host != "":
			s.page = pageHost
		case s.page == pageOperations && s.operation != "":
			s.page = pageOperation
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

// move chooses another row. Beyond the last one, and where there is none to choose, the
// page moves.
func (s *screen) move(step int) {
	all, chosen := s.choice()
	at := 0
	if chosen != nil {
		at = slices.Index(all, *chosen)
	}
	if last := len(all) - 1; len(all) > 0 && s.scroll == 0 && (step < 0 || at < last) {
		*chosen = all[min(max(at+step, 0), last)]
		return
	}
	s.scroll = max(s.scroll+step, 0)
}

// Rows of the picture that are not the page's: the title, and the keys.
const frame = 3

// lines are the picture: exactly height of them where there is room for any. Lines that
// are too long for the terminal go on in the next: nothing is cut off unsaid.
func (s *screen) lines(width, height int, now time.Time) []string {
	title, trouble := s.title(width, now)
	var body []string
	for _, l := range append(trouble, s.body(width, now)...) {
		body = append(body, fold(l, width)...)
	}
	room := max(height-frame, 1)
	s.height = room
	at := 0
	for i, l := range body { // the chosen row stays in sight
		if strings.HasPrefix(l, mark) {
			at = max(0, i-room+2)
		}
	}
	s.scroll = min(s.scroll, max(0, len(body)-room-at))
	at += s.scroll
	more := ""
	if left := len(body) - at - room; left > 0 {
		more = fmt.Sprintf("(%d more lines)", left)
	}
	out := []string{s.paint(bold, crop(title, width)), crop(more, width)}
	for i := range room {
		line := ""
		if at+i < len(body) {
			line = s.row(body[at+i])
		}
		out = append(out, line)
	}
	keys := "↑↓ choose  enter look  d decision  o operations  r now  ? keys  q quit"
	if _, chosen := s.choice(); chosen == nil {
		keys = "↑↓ scroll  f fleet  d decision  o operations  r now  ? keys  q quit"
	} else if s.page != pageFleet {
		keys = "↑↓ choose  enter look  f fleet  d decision  r now  ? keys  q quit"
	}
	out = append(out, s.paint(bold, crop(keys, width)))
	return out[:min(len(out), max(height, 1))]
}

// title is the first line; why there is no newer look goes below it where it is too long.
func (s *screen) title(width int, now time.Time) (title string, trouble []string) {
	title = "suffrage top: " + pageNames[s.page]
	switch s.page {
	case pageHost:
		title += " " + s.host
	case pageOperation:
		title += " " + s.operation
	}
	title += "  " + s.age(now)
	if s.err == nil {
		return title, nil
	}
	if whole := title + ": " + s.err.Error(); len([]rune(whole)) <= width {
		return whole, nil
	}
	return title, []string{s.err.Error(), ""}
}

// age says how old the picture is.
func (s *screen) age(now time.Time) string {
	switch {
	case s.err != nil && s.at.IsZero():
		return "no look yet"
	case s.err != nil:
		return fmt.Sprintf("looked %s, not since", ago(s.at, now))
	case s.at.IsZero():
		return "looking"
	}
	return "looked " + ago(s.at, now)
}

func (s *screen) body(width int, now time.Time) []string {
	b := &sheet{width: width}
	switch {
	case s.page == pageHelp:
		b.WriteString(newTopCmd().Long + "\n")
	case s.at.IsZero():
	case s.page == pageHost:
		explain(s.look, s.host).print(b)
	case s.page == pageDecision:
		s.status.printRequest(b, now)
		showPlan(b, s.look.d, now)
		printWarnings(b, s.look.d)
	case s.page == pageOperations:
		s.list(b, now)
	case s.page == pageOperation:
		s.record(b, now)
	default:
		s.fleet(b, now)
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
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

// crop makes a line fit, and shows where something is missing.
func crop(line string, width int) string {
	r := []rune(tame(line))
	if len(r) <= width {
		return string(r)
	}
	return string(r[:max(width-1, 0)]) + "…"
}

// fold makes lines of one that is too long, broken between words where there are any,
// each but the first further in than it began.
func fold(line string, width int) (out []string) {
	r := []rune(tame(line))
	indent := len(r) - len([]rune(strings.TrimLeft(string(r), " "))) + 2
	if indent*2 > width {
		indent = 0
	}
	for width > 0 && len(r) > width {
		end := width
		for end > indent+1 && r[end] != ' ' {
			end--
		}
		if end <= indent+1 {
			end = width
		}
		out = append(out, strings.TrimRight(string(r[:end]), " "))
		rest := strings.TrimLeft(string(r[end:]), " ")
		r = []rune(strings.Repeat(" ", indent) + rest)
	}
	return append(out, string(r))
}

// tame takes out of a line what a terminal would take for an order: some of it comes
// from other machines.
func tame(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, line)
}
