package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Table is what runs show, one line of Markdown for each scenario. Times are of
// runs that passed: the median, and the worst.
func Table(runs []Run) string {
	by := map[string][]Run{}
	for _, r := range runs {
		by[r.Scenario] = append(by[r.Scenario], r)
	}
	var b strings.Builder
	b.WriteString("| scenario | runs | passed | faults | writes | longest gap | well again | took |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(by)) {
		row(&b, "`"+name+"`", by[name])
	}
	row(&b, "all", runs)
	return b.String()
}

func row(b *strings.Builder, name string, runs []Run) {
	var passed, faults, writes int
	var gaps, wells, took []float64
	for _, r := range runs {
		faults += len(r.Faults)
		writes += r.Acknowledged
		if !r.Passed {
			continue
		}
		passed++
		gaps, took = append(gaps, r.Gap), append(took, r.Seconds)
		if r.Well > 0 {
			wells = append(wells, r.Well)
		}
	}
	fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %s | %s | %s |\n", name, len(runs), passed, faults, writes, spread(gaps), spread(wells), spread(took))
}

// spread gives the median, the lower one of two, and the worst.
func spread(seconds []float64) string {
	if len(seconds) == 0 {
		return "–"
	}
	s := slices.Sorted(slices.Values(seconds))
	return figure(s[(len(s)-1)/2]) + " / " + figure(s[len(s)-1])
}

func figure(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f s", seconds)
	}
	return fmt.Sprintf("%.0f s", seconds)
}
