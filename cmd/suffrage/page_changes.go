package main

import (
	"fmt"
	"slices"
	"strings"

	"suffrage/membership"
)

// whatChanges says how one decision differs from the one before it, line by line, and
// the same without figures, which are others each round.
func whatChanges(before, after membership.Decision) (lines []string, key string) {
	say := func(line string) { lines, key = append(lines, line), key+line+"\n" }
	if op := after.Operation; op != nil && op.TurnedBack != "" && (before.Operation == nil || before.Operation.TurnedBack == "") {
		lines, key = append(lines, fmt.Sprintf("The open %s turns back, because %s.", op.Title(), op.TurnedBack)), key+"turns back\n"
	}
	was, is := planned(before), planned(after)
	if was != "" && was != is {
		say("No " + was + " any more.")
		if out := before.Plan.Out; out != "" && (is == "" || after.Plan.Out != out) {
			say(out + " would no longer be moved.")
		}
	}
	if is != "" && was != is {
		begins := "Suffrage would " + is
		if after.Mode == membership.Active {
			begins = "Suffrage begins this in its next round: " + is
		}
		lines, key = append(lines, begins+", because "+after.Plan.Why+"."), key+begins+"\n"
	}
	for _, r := range lacking(after.Refusals, before.Refusals) {
		lines, key = append(lines, fmt.Sprintf("What holds back then: %s.", r)), key+"+"+refused(r)+"\n"
	}
	for _, r := range lacking(before.Refusals, after.Refusals) {
		say(fmt.Sprintf("What holds back no longer: %s.", refused(r)))
	}
	for _, w := range after.Warnings {
		if !slices.Contains(before.Warnings, w) {
			lines = append(lines, "Warning: "+w+".")
		}
	}
	if len(lines) == 0 {
		say("Nothing changes in what is decided now.")
	}
	return lines, key
}

func planned(d membership.Decision) string {
	if d.Plan == nil {
		return ""
	}
	return d.Plan.String()
}

// refused is a refusal without its figures.
func refused(r membership.Refusal) string { return strings.TrimSpace(string(r.Code) + " " + r.Subject) }

// lacking are those that the others have not.
func lacking(some, others []membership.Refusal) (out []membership.Refusal) {
	for _, r := range some {
		if !slices.ContainsFunc(others, func(o membership.Refusal) bool { return o.Code == r.Code && o.Subject == r.Subject }) {
			out = append(out, r)
		}
	}
	return out
}
