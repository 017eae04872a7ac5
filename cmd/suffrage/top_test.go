package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

func TestParseKeys(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []key
		why  string
	}{
		{"q", []key{keyQuit}, "a letter"},
		{"\x03", []key{keyQuit}, "Ctrl-C is a byte in raw mode"},
		{"\x1b", []key{keyFleet}, "escape by itself"},
		{"\x1b[A\x1b[B", []key{keyUp, keyDown}, "arrows that came in one read"},
		{"\x1bOA", []key{keyUp}, "an arrow in application mode"},
		{"\x1b[1;5Bj", []key{keyDown}, "Ctrl and an arrow is no key of ours, and its tail is none either"},
		{"\x1b[6~d", []key{keyPageDown, keyDecision}, "page down"},
		{"xyz", nil, "letters that mean nothing"},
		{"\x1b[", []key{keyFleet}, "a broken sequence"},
	} {
		if got := parseKeys([]byte(tc.in)); !slices.Equal(got, tc.want) {
			t.Errorf("%q: %v, want %v: %s", tc.in, got, tc.want, tc.why)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	for _, s := range []string{"q", "\x1b[A", "\x1b[1;5B", "\x1b", "\x1bO", "\xff\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := parseKeys(b); len(got) > len(b) {
			t.Errorf("%d keys of %d bytes", len(got), len(b))
		}
	})
}

// topScreen is one of a fleet that a test wrote down.
func topScreen(hosts ...string) *screen {
	s := &screen{at: testTime, host: hosts[0], status: Status{At: testTime, Voters: 3, Target: 3, FitVoters: 2, Mode: membership.DryRun,
		ControllerNote: "none leads", Decision: membership.Decision{Kind: membership.Steady, At: testTime, Since: testTime}}}
	for _, h := range hosts {
		s.status.Hosts = append(s.status.Hosts, HostStatus{Host: h, Role: "voter", Agent: true, Verdict: fitness.Verdict{Host: h, Status: fitness.Fit}})
	}
	return s
}

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTopFitsItsTerminal(t *testing.T) {
	s := topScreen("h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9")
	s.colours = true
	s.status.Hosts[2].Verdict.Status = fitness.Unfit
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 5}, {10, 3}, {1, 1}, {300, 100}} {
		for _, k := range []key{keyFleet, keyDecision, keyOperations, keyHelp, keyFleet, keyEnter} {
			s.press(k)
			lines := s.lines(size[0], size[1], testTime)
			if len(lines) > size[1] {
				t.Errorf("%v, %s: %d lines", size, pageNames[s.page], len(lines))
			}
			for _, l := range lines {
				for _, look := range []string{bold, red, yellow, plain} {
					l = strings.ReplaceAll(l, look, "")
				}
				if n := len([]rune(l)); n > size[0] {
					t.Errorf("%v, %s: a line of %d: %s", size, pageNames[s.page], n, l)
				}
			}
		}
	}
}

func TestTopChoosesAndScrolls(t *testing.T) {
	s := topScreen("h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9")
	picture := func() string { return strings.Join(s.lines(80, 8, testTime), "\n") }
	picture()
	for range 8 {
		s.press(keyDown)
	}
	if got := picture(); s.host != "h9" || !strings.Contains(got, "> h9") {
		t.Errorf("down to the end is %s, and it has to be in sight:\n%s", s.host, got)
	}
	for range 20 {
		s.press(keyDown)
		picture()
	}
	if got := picture(); s.host != "h9" || !strings.Contains(got, "steady: nothing needs doing") || strings.Contains(got, "more lines") {
		t.Errorf("beyond the last host the rest comes into sight:\n%s", got)
	}
	for s.scroll > 0 {
		s.press(keyUp)
	}
	s.press(keyUp)
	s.status.Hosts = slices.Delete(s.status.Hosts, 0, 1) // rows move; the choice does not
	if s.press(keyEnter); s.page != pageHost || s.host != "h8" {
		t.Errorf("enter shows page %v of %s, want that of h8", s.page, s.host)
	}
	s.press(keyHelp)
	first := picture()
	s.press(keyDown)
	if got := picture(); got == first {
		t.Error("down does not scroll a page that is longer than the terminal")
	}
	for range 1000 {
		s.press(keyPageDown)
	}
	picture()
	end := s.scroll
	s.press(keyUp)
	if picture(); s.scroll != end-1 {
		t.Errorf("beyond the end nothing is to be scrolled back: %d after %d", s.scroll, end)
	}
}

func TestTopSaysHowOldItIs(t *testing.T) {
	s := topScreen("h1")
	later := testTime.Add(30 * time.Second)
	s.take(seen{err: errors.New("no route to \x1b[31mh1")})
	got := strings.Join(s.lines(100, 20, later), "\n")
	if !strings.Contains(got, "looked 30 s ago, not since: no route to  [31mh1") || !strings.Contains(got, "> h1") {
		t.Errorf("after a look that failed the one before stays, with its age and no orders to the terminal:\n%s", got)
	}
}

func TestTopWithoutColours(t *testing.T) {
	s := topScreen("h1", "h2")
	s.status.Hosts[1].Verdict.Status = fitness.Unfit
	if got := strings.Join(s.lines(100, 20, testTime), "\n"); strings.Contains(got, "\x1b") || !strings.Contains(got, "unfit") {
		t.Errorf("it has to say unfit, and without a colour:\n%s", got)
	}
	s.colours = true
	if got := strings.Join(s.lines(100, 20, testTime), "\n"); !strings.Contains(got, red+"  h2") {
		t.Errorf("the row of h2 is not red:\n%s", got)
	}
}

// The fault of a slow pair is that of one end.
func TestTopMarksWhoIsToBlame(t *testing.T) {
	s := topScreen("h1", "h3")
	s.look.in.Readings = []fitness.Reading{{Host: "h1", Peer: "h3", Signal: fitness.RTT, Count: fitness.WindowSize, Figure: 0.151, Band: fitness.Over}}
	blamed := &s.status.Hosts[1].Verdict
	blamed.Status, blamed.Reasons = fitness.Unfit, []fitness.Reason{{Signal: fitness.RTT, Peer: "h1", Band: fitness.Over, Figure: 0.151}}
	for host, want := range map[string]string{"h1": "151 ms", "h3": "151 ms!"} {
		v := s.status.Hosts[0].Verdict
		if host == "h3" {
			v = *blamed
		}
		if got := s.figure(v, fitness.RTT); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
	if got := s.figure(*blamed, fitness.Memory); got != "?" {
		t.Errorf("nothing was measured, and it shows %s", got)
	}
}

// An 80 by 24 terminal is what most people have: what is wrong has to be on it, whole.
func TestTopShowsWhatMatters(t *testing.T) {
	s := topScreen("h1", "h2", "h3", "h4", "h5")
	for i := range s.status.Hosts {
		h := &s.status.Hosts[i]
		h.Verdict.Since, h.Verdict.Whole = testTime.Add(-10*time.Minute), true // "over 10 min ago"
		h.Mark.Eligible = &membership.Say{Value: true}
		for sig, f := range map[fitness.Signal]fitness.Figure{fitness.RTT: 0.151, fitness.WALFsync: 0.0123, fitness.BackendCommit: 0.0123, fitness.Memory: 5.1e9, fitness.Stability: 0} {
			s.look.in.Readings = append(s.look.in.Readings, fitness.Reading{Host: h.Host, Signal: sig, Count: fitness.WindowSize, Figure: f})
		}
	}
	bad := &s.status.Hosts[2]
	bad.Verdict.Status = fitness.Unfit
	bad.Verdict.Reasons = []fitness.Reason{{Signal: fitness.Memory, Band: fitness.Over, Figure: 0.1e9, Limit: 0.5e9}, {Signal: fitness.Stability, Band: fitness.Over, Figure: 7, Limit: 2}}
	for _, set := range []struct {
		signal fitness.Signal
		figure fitness.Figure
	}{{fitness.Memory, 0.1e9}, {fitness.Stability, 7}} {
		for i := range s.look.in.Readings {
			if r := &s.look.in.Readings[i]; r.Host == "h3" && r.Signal == set.signal {
				r.Figure = set.figure
			}
		}
	}
	s.status.Request = &membership.Request{Out: "h3", In: "h4", By: "anna@laptop", At: testTime.Add(-time.Minute)}
	s.status.Decision.Warnings = []string{"the disk of h5 is nearly full"}
	picture := strings.Join(s.lines(80, 24, testTime), "\n")
	for _, want := range []string{fitness.Figure(0.1e9).Text("B") + "!", "7!", "RESTARTS", "request: swap h3 → h4", "warning: the disk of h5", "steady", "q quit", "no room for SINCE"} {
		if !strings.Contains(picture, want) {
			t.Errorf("on 80 by 24 there is no %q:\n%s", want, picture)
		}
	}
	if strings.Contains(picture, "…") {
		t.Errorf("something is cut off:\n%s", picture)
	}
	// Where there is room nothing is left out.
	if picture := strings.Join(s.lines(120, 24, testTime), "\n"); !strings.Contains(picture, "over 10 min ago") || strings.Contains(picture, "no room") {
		t.Errorf("on 120 columns:\n%s", picture)
	}
	// What cannot be shorter goes on in the next line.
	s.status.Decision.Warnings = []string{strings.Repeat("word ", 30) + "end"}
	for _, width := range []int{40, 80} {
		if picture := strings.Join(s.lines(width, 80, testTime), "\n"); !strings.Contains(picture, "end") {
			t.Errorf("on %d columns the warning has no end:\n%s", width, picture)
		}
	}
}

// A terminal that is wider than a command's text is used.
func TestTopUsesItsWidth(t *testing.T) {
	s := topScreen("h1")
	why := strings.TrimSpace(strings.Repeat("word ", 25))
	s.status.Decision = membership.Decision{Kind: membership.Planned, At: testTime, Since: testTime, Plan: &membership.Plan{Out: "h1", In: "h2", Why: why}}
	if picture := strings.Join(s.lines(200, 24, testTime), "\n"); !strings.Contains(picture, why) {
		t.Errorf("on 200 columns it is wrapped:\n%s", picture)
	}
}

func TestTopFoldsLines(t *testing.T) {
	for _, tc := range []struct {
		line  string
		width int
		want  []string
		why   string
	}{
		{"one two", 7, []string{"one two"}, "it fits"},
		{"one two three", 8, []string{"one two", "  three"}, "between words, further in"},
		{"  one two", 6, []string{"  one", "two"}, "no room to go further in"},
		{"abcdefghij", 4, []string{"abcd", "  ef", "  gh", "  ij"}, "a word without end"},
		{"", 10, []string{""}, "an empty line stays one"},
		{"a\x1b[31mb", 10, []string{"a [31mb"}, "no orders to the terminal"},
	} {
		got := fold(tc.line, tc.width)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q at %d: %q, want %q: %s", tc.line, tc.width, got, tc.want, tc.why)
		}
		for _, l := range got {
			if len([]rune(l)) > tc.width {
				t.Errorf("%q at %d: %q is too long", tc.line, tc.width, l)
			}
		}
	}
}

// The operations can be looked at one by one, each of them once.
func TestTopOperations(t *testing.T) {
	op := func(id, out, in string) membership.Operation {
		return membership.Operation{ID: id, Out: out, In: in, By: "controller", Begun: testTime.Add(-time.Hour), Ended: testTime, Outcome: membership.Completed, Why: "because of " + out}
	}
	s := topScreen("h1")
	open := op("20260301t110000-2", "h3", "h4")
	open.Outcome, open.Ended = "", time.Time{}
	l := look{}
	l.in.Open, l.in.Operations = &open, []membership.Operation{op("20260301t100000-1", "h1", "h2")}
	s.from = &fleet{}
	s.take(seen{l, testTime, nil})
	s.press(keyOperations)
	picture := func() string { return strings.Join(s.lines(80, 24, testTime), "\n") }
	if got := picture(); !strings.Contains(got, "> "+open.ID) || !strings.Contains(got, "h1 → h2") || strings.Contains(got, "…") {
		t.Errorf("the open one is chosen, and both are there:\n%s", got)
	}
	s.press(keyEnter)
	if got := picture(); !strings.Contains(got, "because of h3") || !strings.Contains(got, "under way") {
		t.Errorf("enter shows the open one:\n%s", got)
	}
	s.press(keyOperations)
	s.press(keyDown)
	s.press(keyEnter)
	if got := picture(); !strings.Contains(got, "because of h1") || !strings.Contains(got, "completed") {
		t.Errorf("enter shows the one that ended:\n%s", got)
	}
	// Recorded, and still in the journal.
	l.in.Operations = append([]membership.Operation{op(open.ID, "h3", "h4")}, l.in.Operations...)
	s.take(seen{l, testTime, nil})
	s.press(keyOperations)
	if got := picture(); strings.Count(got, open.ID) != 1 || strings.Contains(got, "under way") {
		t.Errorf("it has ended, and is there once:\n%s", got)
	}
}
