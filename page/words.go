package page

import (
	"fmt"
	"strings"
	"time"

	"suffrage/fitness"
)

// ago is how long ago something was, in words: whoever reads it may be in another
// time zone than the controller.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	if d < time.Second {
		return "now"
	}
	return length(d) + " ago"
}

// length is a length of time in one or two units: "12 s", "3 min 5 s", "2 h 10 min".
func length(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d, 0).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 10*time.Minute:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 10*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours())/24)
}

// figure is a p99 as a person reads it, "?" where it is not known.
func figure(f *fitness.Figure) string {
	if f == nil {
		return "?"
	}
	return f.Text("s")
}

// size is a size in bytes as a person reads it; a new cluster's snapshot is no 0 MiB.
func size(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fitness.Figure(n).Text("B")
}

// span is a piece of a text.
type span struct {
	Text string
	Code bool // it stood between backticks
}

// quoted takes a text apart at its backticks.
func quoted(text string) (out []span) {
	for i, t := range strings.Split(text, "`") {
		if t != "" {
			out = append(out, span{t, i%2 == 1})
		}
	}
	return out
}

// brief is a name as far as there is room for it in the picture. What goes is its middle:
// the names of a fleet mostly differ at the end.
func brief(name string, letters int) string {
	r := []rune(name)
	if len(r) <= letters {
		return name
	}
	end := letters / 2
	return string(r[:letters-end-1]) + "…" + string(r[len(r)-end:])
}

// lasting is for how long something has been so, empty where it was seen once only.
func lasting(since, now time.Time) string {
	if since.IsZero() || !since.Before(now) {
		return ""
	}
	return "for " + length(now.Sub(since))
}

// stood is for how long a verdict has stood: as far as the samples reach back, so that
// one that they are full of may be older.
func stood(v fitness.Verdict, now time.Time) string {
	text := lasting(v.Since, now)
	if v.Whole && text != "" {
		text = strings.Replace(text, "for ", "for over ", 1)
	}
	return text
}

// band is where a figure lies, in words that are true of memory too, of which more is
// better.
func band(b fitness.Band) string {
	switch b {
	case fitness.Under:
		return "within limit"
	case fitness.Between:
		return "between limits"
	case fitness.Over:
		return "past limit"
	}
	return "unknown"
}

// glyph is the shape that goes with a state's word, for eyes that do not tell
// colours apart.
func glyph(word string) string {
	switch word {
	case "fit", "safe", "under", "completed", "steady":
		return "✓"
	case "marginal", "edge", "between", "undone":
		return "▲"
	case "unfit", "lost", "over", "stopped":
		return "✕"
	}
	return "?"
}
