package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.tmpl
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// maxCharts bounds the pictures of p99 over time; the table has more, the JSON
// form all.
const maxCharts = 30

// HTML writes the report as one page that needs nothing else: no script, no
// font, no picture from elsewhere. Whatever a timeline says is escaped.
func (r Report) HTML(w io.Writer) error {
	const day = "2 January 2006"
	title := "Suffrage from " + r.From.Format(day) + " to " + r.To.Format(day)
	if r.From.Format(day) == r.To.Format(day) {
		title = "Suffrage on " + r.From.Format(day)
	}
	v := pageView{Report: r, Title: title,
		Span: length(r.To.Sub(r.From).Seconds()), From: stamp(r.From), To: stamp(r.To),
		Findings: r.findings(), How: howItIsReckoned, Ticks: timeMarks(r.From, r.To),
		Decisions: decisionBlocks(r.kinds), DecisionHeight: decisionHeight,
		Kinds: r.kindTable(), Plans: r.planTable(), Operations: r.operationTable(), Refusals: r.refusalTable(), Hosts: r.hostTable(),
		Figures: r.seriesTable(maxSeries), Unfit: r.unfitTable(), Held: r.heldTable(), Commit: r.commitTable(), Gaps: r.gapTable(),
		PlotHeight: plotHeight, Right: chartWidth - right}
	for i, h := range r.Hosts {
		y := float64(i * (stripHeight + 14))
		v.Strips = append(v.Strips, strip{h.Host, y, y + stripHeight - 4, stripBlocks(h.strip, y)})
	}
	v.StripsHeight = len(r.Hosts) * (stripHeight + 14)
	for i, s := range r.Series[:min(maxCharts, len(r.Series))] {
		sc := scaleOf(s)
		c := chart{ID: i, Name: fmt.Sprintf("%s %s", s.name(), s.of()), LimitY: sc.y(float64(s.Limit)), Limit: s.Limit.Text("s"), Marks: sc.marks(),
			About: fmt.Sprintf("limit %s, median %s, 95 %% of the time up to %s, worst %s; over the limit for %s of %s", s.Limit.Text("s"), s.Median.Text("s"), s.P95.Text("s"), s.Worst.Text("s"), length(s.OverSeconds), length(s.KnownSeconds))}
		c.Area, c.Line = band(s, sc)
		v.Charts = append(v.Charts, c)
	}
	v.More = len(r.Series) - len(v.Charts)
	v.Facts = r.facts()
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("report: write page: %w", err)
	}
	return nil
}

// pageView is what the page shows.
type pageView struct {
	Report
	Title, Span, From, To string
	Facts                 []fact
	Findings, How         []string
	Ticks                 []mark
	Decisions             []block
	DecisionHeight        int
	Strips                []strip
	StripsHeight          int
	Charts                []chart
	More                  int
	PlotHeight, Right     int

	Kinds, Plans, Operations, Refusals, Hosts, Figures, Unfit, Held, Commit, Gaps table
}

type fact struct{ Name, Value, Note string }

type strip struct {
	Host   string
	Y      float64
	Text   float64
	Blocks []block
}

type chart struct {
	ID          int
	Name, About string
	Area, Line  string
	LimitY      float64
	Limit       string
	Marks       []mark
}

// facts are the figures that are looked at first.
func (r Report) facts() []fact {
	begun, stood := r.planned()
	codes := map[string]bool{}
	for _, f := range r.Refusals {
		codes[string(f.Code)] = true
	}
	modes := make([]string, 0, len(r.Modes))
	for _, m := range r.Modes {
		modes = append(modes, m.Mode)
	}
	worst := "–"
	if n := len(r.Tolerance); n > 0 {
		least := r.Tolerance[0]
		for _, t := range r.Tolerance {
			if t.Tolerance < least.Tolerance {
				least = t
			}
		}
		worst = fmt.Sprint(least.Tolerance)
	}
	return []fact{
		{"recorded", r.share(r.RecordedSeconds), fmt.Sprintf("%s, %s", length(r.RecordedSeconds), count(r.Moments, "moment"))},
		{"mode", strings.Join(modes, ", "), count(r.Changes, "change") + " of decision"},
		{"plans", fmt.Sprint(begun), "stood for " + length(stood)},
		{"asked of you", fmt.Sprint(r.Asked.Times), "for " + length(r.Asked.Seconds)},
		{"kinds of refusals", fmt.Sprint(len(codes)), "each with what lifts it in docs/refusals.md"},
		{"least tolerance", worst, "voters that could be lost, at the worst time"},
	}
}
