package page

import (
	"fmt"
	"strings"

	"suffrage/membership"
)

// Headline is a decision in one line, without ages.
func Headline(d membership.Decision) string {
	switch d.Kind {
	case membership.Steady:
		return "Nothing needs doing"
	case membership.Planned:
		if d.Mode == membership.Active {
			return "About to " + d.Plan.String()
		}
		return "Would " + d.Plan.String()
	case membership.StepNext:
		what := "goes on"
		if d.Operation.TurnedBack != "" {
			what = "turns back"
		}
		return fmt.Sprintf("%s %s: %s", d.Operation.Title(), what, act(*d.Step))
	}
	return "Nothing is done: " + strings.Join(grouped(d.Refusals), ", ")
}

// grouped are the codes of refusals, each once with what it is about: "not-held (h1, h2)".
func grouped(refusals []membership.Refusal) (out []string) {
	var order []membership.Code
	about := map[membership.Code][]string{}
	for _, r := range refusals {
		if _, there := about[r.Code]; !there {
			order, about[r.Code] = append(order, r.Code), nil
		}
		if r.Subject != "" {
			about[r.Code] = append(about[r.Code], r.Subject)
		}
	}
	for _, code := range order {
		text := string(code)
		if len(about[code]) > 0 {
			text += " (" + strings.Join(about[code], ", ") + ")"
		}
		out = append(out, text)
	}
	if n := len(out); n > 4 {
		out = append(out[:3], fmt.Sprintf("and %d more", n-3))
	}
	return out
}

// act is the next act without its reason, which may have figures in it that change.
func act(a membership.Act) string {
	if a.Verb == membership.Wait {
		return a.Step
	}
	return strings.TrimSpace(string(a.Verb) + " " + a.Host)
}
