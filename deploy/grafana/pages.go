package grafana

import (
	"maps"
	"slices"
	"strings"
)

// Pages are all dashboards, by the name of their file.
func Pages() map[string]Dashboard {
	return map[string]Dashboard{"fleet.json": fleet(), "host.json": host(), "swaps.json": swaps()}
}

const (
	green  = "green"
	yellow = "yellow"
	orange = "orange"
	red    = "red"
	blue   = "blue"
	grey   = "text"
)

var (
	zero = 0.0

	verdicts = map[string]Word{"0": {"unknown", grey}, "1": {"fit", green}, "2": {"marginal", yellow}, "3": {"unfit", red}}
	roles    = map[string]Word{"0": {"standby", grey}, "1": {"learner", yellow}, "2": {"voter", green}, "3": {"leader", blue}}
	kinds    = map[string]Word{"0": {"steady", green}, "1": {"plan", yellow}, "2": {"step", blue}, "3": {"refused", orange}}
	yesNo    = map[string]Word{"0": {"no", grey}, "1": {"yes", blue}}
	upDown   = map[string]Word{"0": {"down", red}, "1": {"up", green}}
	works    = map[string]Word{"0": {"fails", red}, "1": {"works", green}}
	atStep   = map[string]Word{"0": {"·", grey}, "1": {"here", blue}}
)

// coded makes one number of a metric that is 1 for one of some label's values:
// the place of that value in the list. by is what it is told apart by.
func coded(metric, label, by, also string, values ...string) string {
	var terms []string
	for i, v := range values {
		matcher := label + `="` + v + `"`
		if also != "" {
			matcher += ", " + also
		}
		terms = append(terms, metric+"{"+matcher+"} * "+string(rune('0'+i)))
	}
	if by != "" {
		by = "by (" + by + ") "
	}
	return "max " + by + "(" + strings.Join(terms, " or ") + ")"
}

func verdictOf(also string) string {
	return coded("suffrage_verdict", "verdict", "host", also, "unknown", "fit", "marginal", "unfit")
}

func roleOf(also string) string {
	return coded("suffrage_host_role", "role", "host", also, "standby", "learner", "voter", "leader")
}

// disk is the panel of a signal of the disk, for all hosts or one, with the limit.
func disk(title, signal, also, legend string) Panel {
	matcher := `signal="` + signal + `"`
	if also != "" {
		matcher += ", " + also
	}
	return Panel{Title: title, Kind: Series, Unit: Seconds, Min: &zero,
		Description: "p99 of the newest 100 samples, as the leading controller judges it. At the limit and above the host is unfit.",
		Queries: []Query{
			{"max by (host) (suffrage_fitness_figure{" + matcher + "})", legend},
			{"min(suffrage_fitness_limit{" + matcher + "})", "limit"},
		}}
}

// cost is what a process of ours takes on its host.
func cost(who, matcher, legend string) []Panel {
	return []Panel{
		{Title: who + ": processor", Kind: Series, Unit: Share, Min: &zero, Description: "Share of one processor.",
			Queries: []Query{{"rate(process_cpu_seconds_total{" + matcher + "}[$__rate_interval])", legend}}},
		{Title: who + ": memory", Kind: Series, Unit: Bytes, Min: &zero, Description: "Resident memory.",
			Queries: []Query{{"process_resident_memory_bytes{" + matcher + "}", legend}}},
	}
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func sorted(m map[string]Word) []string { return slices.Sorted(maps.Keys(m)) }
