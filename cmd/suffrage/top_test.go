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
	for range 20 {
		s.press(keyDown)
	}
	if got := picture(); s.host != "h9" || !strings.Contains(got, "> h9") {
		t.Errorf("down to the end is %s, and it has to be in sight:\n%s", s.host, got)
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
