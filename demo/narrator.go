package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"suffrage/fitness"
	"suffrage/membership"
)

// narrator tells people what happens: lines that stay, each with the seconds
// since the start, and on a terminal one line that is rewritten.
type narrator struct {
	start time.Time
	width func() int // of the terminal; 0 where there is none

	mu   sync.Mutex
	w    io.Writer
	live bool // a rewritten line stands on the screen
}

// say prints a line that stays.
func (n *narrator) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clear()
	fmt.Fprintf(n.w, "%s %s\n", n.stamp(), fmt.Sprintf(format, args...))
}

// block prints text as it is, without a stamp.
func (n *narrator) block(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clear()
	fmt.Fprintln(n.w, strings.TrimRight(text, "\n"))
}

// status rewrites the live line; it prints nothing where there is no terminal.
func (n *narrator) status(text string) {
	width := n.width()
	if width < 20 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	text = n.stamp() + " " + text
	if utf8.RuneCountInString(text) >= width {
		text = string([]rune(text)[:width-1])
	}
	n.clear()
	fmt.Fprint(n.w, text)
	n.live = true
}

// done takes the live line away.
func (n *narrator) done() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clear()
}

func (n *narrator) clear() {
	if n.live {
		fmt.Fprint(n.w, "\r\x1b[K")
		n.live = false
	}
}

func (n *narrator) stamp() string {
	return fmt.Sprintf("%+7.1fs", time.Since(n.start).Seconds())
}

// progress is the verdicts in one line: how far each has got towards having
// held for a whole window.
func progress(d membership.Decision) string {
	parts := make([]string, 0, len(d.Verdicts))
	for _, v := range d.Verdicts {
		p := fmt.Sprintf("%s %s", v.Host, v.Status)
		switch {
		case v.Status == fitness.StatusUnknown:
			p += fmt.Sprintf(" %d/%d", fewest(v), fitness.WindowSize)
		case v.Held < fitness.Whole && v.Status != fitness.Marginal:
			p += fmt.Sprintf(" %d/%d", v.Held, fitness.Whole)
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, " · ") + " → " + string(d.Kind)
}

// fewest is the count of the emptiest window among a verdict's reasons.
func fewest(v fitness.Verdict) int {
	n := fitness.WindowSize
	for _, r := range v.Reasons {
		if r.Band == fitness.Unknown {
			n = min(n, r.Count)
		}
	}
	return n
}

// table shows every host with its verdict.
func table(f *Fleet, d membership.Decision) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "         HOST\tADDRESS\tROLE\tZONE\tVERDICT")
	for _, h := range f.Hosts {
		verdict := "unknown"
		for _, v := range d.Verdicts {
			if v.Host == h.Name {
				verdict = v.String()
			}
		}
		fmt.Fprintf(w, "         %s\t%s\t%s\t%s\t%s\n", h.Name, h.Mesh, h.Role(), h.Zone, verdict)
	}
	w.Flush()
	return b.String()
}
