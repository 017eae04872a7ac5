package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"suffrage/fitness"
	"suffrage/membership"
)

// Text writes the report for a terminal: the same figures without the pictures.
func (r Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s (UTC): %s\n", stamp(r.From), stamp(r.To), length(r.To.Sub(r.From).Seconds()))
	fmt.Fprintf(&b, "recorded %s of it; nothing is known of %s in %s\n", length(r.RecordedSeconds), length(r.UnknownSeconds), count(r.GapCount, "gap"))
	if r.Unread+r.Disordered > 0 {
		fmt.Fprintf(&b, "left out: %s that could not be read, %s from before the one that they follow\n", count(r.Unread, "line"), count(r.Disordered, "moment"))
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "left out: %d hosts and series, since a report has room for %d and %d\n", r.Left, maxHosts, maxSeries)
	}
	section := func(title string, head []string, rows [][]string) {
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{head}, rows...) {
			for i := range row {
				row[i] = plain(row[i])
			}
			fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t"))
		}
		t.Flush()
	}
	for _, t := range r.tables() {
		section(strings.ToUpper(t.Title), t.Head, t.Rows)
	}
	b.WriteString("\n" + strings.Join(r.findings(), "\n") + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// table is one table of a report, the same on a terminal and on paper.
type table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// tables are all of them. Those without rows are left out by whoever shows them.
func (r Report) tables() []table {
	kinds, plans, refusals, hosts, series := r.kindTable(), r.planTable(), r.refusalTable(), r.hostTable(), r.seriesTable(20)
	return []table{kinds, plans, r.operationTable(), refusals, hosts, series, r.unfitTable(), r.heldTable(), r.commitTable(), r.gapTable()}
}

func (r Report) kindTable() table {
	t := table{"what it said", []string{"decision", "time", "share", "times", "longest"}, nil}
	for _, k := range r.Kinds {
		t.Rows = append(t.Rows, append([]string{kindWords[string(k.Kind)], length(k.Seconds), r.share(k.Seconds)}, k.rest()...))
	}
	if r.UnknownSeconds > 0 {
		t.Rows = append(t.Rows, []string{"not known", length(r.UnknownSeconds), r.share(r.UnknownSeconds), fmt.Sprint(r.GapCount), length(r.longestGap())})
	}
	return t
}

func (r Report) longestGap() (most float64) {
	for _, g := range r.Gaps {
		most = max(most, g.Seconds)
	}
	return most
}

// kindWords are what kinds of decisions are called.
var kindWords = map[string]string{"steady": "nothing to do", "plan": "would have acted", "step": "an operation under way", "refused": "refused"}

func (s Span) rest() []string { return []string{fmt.Sprint(s.Times), length(s.Longest)} }

// when is when something was so first and last.
func (s Span) when() []string { return []string{stamp(s.First), stamp(s.Last)} }

func (r Report) planTable() table {
	t := table{"what it would have begun", []string{"plan", "times", "stood for", "longest", "first", "last"}, nil}
	for _, p := range r.Plans {
		t.Rows = append(t.Rows, append([]string{p.Move.String(), fmt.Sprint(p.Times), length(p.Seconds), length(p.Longest)}, p.when()...))
	}
	return t
}

func (r Report) operationTable() table {
	t := table{"what it did", []string{"operation", "", "for", "begun", "ended"}, nil}
	for _, o := range r.Operations {
		t.Rows = append(t.Rows, append([]string{o.Operation, Move{o.Out, o.In, o.Regrade, o.To}.String(), length(o.Seconds)}, o.when()...))
	}
	return t
}

func (r Report) refusalTable() table {
	t := table{"what it refused", []string{"code", "about", "lifted by", "times", "time", "longest", "last"}, nil}
	for _, f := range r.Refusals {
		t.Rows = append(t.Rows, []string{string(f.Code), f.Subject, lifters[f.Kind], fmt.Sprint(f.Times), length(f.Seconds), length(f.Longest), stamp(f.Last)})
	}
	return t
}

// lifters say who lifts a kind of refusal. What was asked for and refused at once is not
// lifted: it is asked for again, otherwise. The kinds of those that are counted together
// are not known.
var lifters = map[membership.RefusalKind]string{membership.Hold: "itself", membership.Owner: "you", membership.Reject: "asking again, once its reason is gone", "": "–"}

func (r Report) hostTable() table {
	t := table{"how the hosts fared", []string{"host", "mark", "voted for", "fit", "marginal", "unfit", "unknown", "stood by for", "fit", "why not fit"}, nil}
	for _, h := range r.Hosts {
		var why []string
		for _, s := range h.Reasons[:min(3, len(h.Reasons))] {
			why = append(why, s.Reason+" "+length(s.Seconds))
		}
		v, s := h.Voter.Sum(), h.Standby.Sum()
		t.Rows = append(t.Rows, []string{h.Host, h.Mark, length(v), percent(h.Voter.Fit, v), percent(h.Voter.Marginal, v), percent(h.Voter.Unfit, v), percent(h.Voter.Unknown, v),
			length(s), percent(h.Standby.Fit, s), strings.Join(why, ", ")})
	}
	return t
}

// seriesTable is of so many series at most, the worst first.
func (r Report) seriesTable(most int) table {
	t := table{"p99 against limits, the worst first", []string{"signal", "of", "limit", "median", "95 % of the time", "worst", "over the limit", "known for"}, nil}
	for _, s := range r.Series[:min(most, len(r.Series))] {
		t.Rows = append(t.Rows, []string{s.name(), s.of(), s.Limit.Text("s"), s.Median.Text("s"), s.P95.Text("s"), s.Worst.Text("s"), length(s.OverSeconds), length(s.KnownSeconds)})
	}
	return t
}

func (s Series) name() string {
	return map[fitness.Signal]string{fitness.RTT: "round trip", fitness.WALFsync: "WAL fsync", fitness.BackendCommit: "backend commit"}[s.Signal]
}

func (s Series) of() string {
	if s.Peer == "" {
		return s.Host
	}
	return s.Host + "–" + s.Peer
}

func (r Report) unfitTable() table {
	t := table{"voters that were unfit for a whole window", []string{"voter", "times", "unfit for", "a fit candidate stood by for", "it would have been moved for"}, nil}
	for _, v := range r.Effect.Voters {
		t.Rows = append(t.Rows, []string{v.Host, fmt.Sprint(v.Unfit.Times), length(v.Unfit.Seconds), length(v.StoodBySeconds), length(v.PlannedSeconds)})
	}
	return t
}

func (r Report) heldTable() table {
	t := table{"what held it back while a fit candidate stood by", []string{"code", "times", "time", "longest"}, nil}
	for _, h := range r.Effect.HeldBy {
		t.Rows = append(t.Rows, []string{string(h.Code), fmt.Sprint(h.Times), length(h.Seconds), length(h.Longest)})
	}
	return t
}

func (r Report) commitTable() table {
	t := table{"the slowest voter that a write waits for, while a swap was planned", []string{"", "median as it was", "median as planned", "95 % as it was", "95 % as planned"}, nil}
	c := r.Effect.Commit
	if c.CountedSeconds == 0 {
		return t
	}
	for _, l := range []struct {
		name string
		of   Compared
	}{{"led as it was", c.Led}, {"led by the worst for it", c.AnyLeader}, {"and one more voter lost", c.OneLost}} {
		t.Rows = append(t.Rows, []string{l.name, l.of.Before.Median.Text("s"), l.of.After.Median.Text("s"), l.of.Before.P95.Text("s"), l.of.After.P95.Text("s")})
	}
	return t
}

func (r Report) gapTable() table {
	t := table{"times of which nothing is known", []string{"from", "to", "for"}, nil}
	for _, g := range r.Gaps {
		t.Rows = append(t.Rows, []string{stamp(g.From), stamp(g.To), length(g.Seconds)})
	}
	return t
}

func (r Report) share(seconds float64) string { return percent(seconds, r.To.Sub(r.From).Seconds()) }

func percent(part, of float64) string {
	switch p := 100 * part / of; {
	case of == 0:
		return "–"
	case part == 0:
		return "0 %"
	case part == of:
		return "100 %"
	case p < 0.1:
		return "<0.1 %"
	case p > 99.9:
		return ">99.9 %"
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// length is a time in two units: "3 d 4 h", "12 min 5 s", "0 s".
func length(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	if d == 0 && seconds > 0 {
		return "<1 s"
	}
	for _, u := range []struct {
		of, under         time.Duration
		name, nameOfUnder string
	}{{24 * time.Hour, time.Hour, "d", "h"}, {time.Hour, time.Minute, "h", "min"}, {time.Minute, time.Second, "min", "s"}} {
		if d < u.of {
			continue
		}
		if rest := d % u.of / u.under; rest > 0 {
			return fmt.Sprintf("%d %s %d %s", d/u.of, u.name, rest, u.nameOfUnder)
		}
		return fmt.Sprintf("%d %s", d/u.of, u.name)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// plain keeps what a file says from moving a terminal's cursor.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '�'
	}, s)
}
