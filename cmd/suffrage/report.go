package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/control"
	"suffrage/report"
)

func newReportCmd() *cobra.Command {
	var from, to string
	c := &cobra.Command{
		Use:   "report [DIRECTORY|FILE...]",
		Short: "Tell of weeks: what would have been done, refused, and changed",
		Long: `Makes a report of a period from the timelines that the controllers keep beside
the inputs of their decisions (docs/report.md): what would have been done and
how often, what was refused and for how long, each p99 against its limit over
time, and what acting would have changed. Read it after weeks of dry-run, before
"suffrage mode active".

Each controller keeps what it saw while it led: copy the directories of all
voter hosts to one place and name them all. Without one, this host's is read.

-o html is one page that needs nothing else; text (or table) and json have the
same figures. --from and --to are a day, a time (2026-11-01T15:04, UTC), or an
age (12h, 30d, 6w). A line that cannot be read is named on stderr, the others
still count, and the exit code is 2.`,
		Example: `  suffrage report
  suffrage report --from 6w -o html > report.html
  suffrage report --from 2026-11-01 --to 2026-11-15 h1/decisions h2/decisions h3/decisions -o html > report.html`,
		Annotations: map[string]string{moreForms: "table html"},
		RunE: func(c *cobra.Command, args []string) error {
			now := time.Now()
			until, err := parseTime("to", to, now)
			if err != nil {
				return usage(err)
			}
			since, err := parseTime("from", from, now)
			switch {
			case err != nil:
				return usage(err)
			case !since.Before(until):
				return usage(fmt.Errorf("--from %s is not before --to %s", since.Format(time.RFC3339), until.Format(time.RFC3339)))
			}
			if len(args) == 0 {
				s, err := loadSettings(c)
				if err != nil {
					return err
				}
				args = []string{s.records()}
			}
			lines, err := timelines(args, since, until)
			if err != nil {
				return usage(err)
			}
			r := reporting{since: since, until: until, exact: c.Flags().Changed("from"), errs: c.ErrOrStderr()}
			period, err := r.read(report.Merge(lines...))
			if err != nil {
				return err
			}
			if err := printReport(c, period); err != nil {
				return err
			}
			if r.bad > 0 {
				lines := "1 line"
				if r.bad > 1 {
					lines = fmt.Sprintf("%d lines", r.bad)
				}
				return usage(fmt.Errorf("%s could not be read; the report is of the others", lines))
			}
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", "30d", "where the period begins: a day, a time, or an age")
	c.Flags().StringVar(&to, "to", "0h", "where it ends")
	return c
}

func printReport(c *cobra.Command, r report.Report) error {
	switch o, _ := c.Flags().GetString("output"); o {
	case "html":
		return r.HTML(c.OutOrStdout())
	case "json":
		return printJSON(c.OutOrStdout(), r)
	}
	return r.Text(c.OutOrStdout())
}

// parseTime reads a day, a time or an age.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	bad := fmt.Errorf("--%s %.40q: want a day (2026-11-01), a time (2026-11-01T15:04) or an age (12h, 30d, 6w)", flag, text)
	if n := len(text); n > 1 && (text[n-1] == 'd' || text[n-1] == 'w') {
		days, err := strconv.Atoi(text[:n-1])
		if text[n-1] == 'w' {
			days *= 7
		}
		if err != nil || days < 0 || days > 100*366 {
			return now, bad
		}
		return now.AddDate(0, 0, -days), nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return now, bad
	}
	return now.Add(-age), nil
}

// timelines are one for each argument: of a directory, its files one after the
// other, without those of days that the period does not touch.
func timelines(args []string, from, to time.Time) (out []iter.Seq2[*membership.Moment, error], err error) {
	for _, a := range args {
		info, err := os.Stat(a)
		if err != nil {
			return nil, fmt.Errorf("report: %w: a controller keeps records while it leads, under controller.records of its host; copy them here and name them", err)
		}
		files := []string{a}
		if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(a, "*"+control.TimelineSuffix)); err != nil {
				return nil, err
			}
			if len(files) == 0 && len(args) > 1 {
				continue // a controller that never led
			}
			if len(files) == 0 {
				return nil, fmt.Errorf("%s holds no timeline (*%s): the controller keeps it from its first round, in controller.records of the host on which it leads", a, control.TimelineSuffix)
			}
			slices.Sort(files) // their names begin with the day
			files = slices.DeleteFunc(files, func(f string) bool { return !touches(filepath.Base(f), from, to) })
		}
		out = append(out, chain(files))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("none of the %d directories holds a timeline (*%s)", len(args), control.TimelineSuffix)
	}
	return out, nil
}

// touches: a file of another name than a controller gives is always read.
func touches(name string, from, to time.Time) bool {
	day, err := time.Parse("20060102"+control.TimelineSuffix, name)
	return err != nil || !day.AddDate(0, 0, 2).Before(from) && !day.AddDate(0, 0, -1).After(to)
}

// chain reads files one after the other, each opened when it is its turn.
func chain(files []string) iter.Seq2[*membership.Moment, error] {
	return func(yield func(*membership.Moment, error) bool) {
		for _, name := range files {
			f, err := os.Open(name)
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for m, err := range report.Lines(name, f) {
				if !yield(m, err) {
					f.Close()
					return
				}
			}
			f.Close()
		}
	}
}

// reporting reads timelines into a period.
type reporting struct {
	since, until time.Time
	exact        bool // since is the owner's word; else it begins with the first moment
	errs         io.Writer
	bad          int
}

// maxTold bounds the lines that are named one by one.
const maxTold = 10

func (r *reporting) read(moments iter.Seq2[*membership.Moment, error]) (report.Report, error) {
	var period *report.Period
	var first, last time.Time
	n, told := 0, time.Now()
	for m, err := range moments {
		if err != nil {
			var line *report.BadLine
			if !errors.As(err, &line) { // a whole file is missing
				return report.Report{}, usage(err)
			}
			if r.bad++; r.bad <= maxTold {
				fmt.Fprintln(r.errs, "suffrage:", err)
			} else if r.bad == maxTold+1 {
				fmt.Fprintln(r.errs, "suffrage: more lines like these are only counted")
			}
			continue
		}
		if n++; n == 1 {
			if first = m.At; !r.exact && first.After(r.since) && first.Before(r.until) {
				r.since = first
			}
			period = report.New(r.since, r.until)
		}
		last = m.At
		if n%1000 == 0 && time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(r.errs, "read %d moments, up to %s\n", n, last.UTC().Format("2006-01-02 15:04"))
		}
		period.Add(m)
	}
	if period == nil {
		return report.Report{}, usage(fmt.Errorf("nothing was recorded from %s to %s: a controller keeps records while it leads, under controller.records of its host", r.since.UTC().Format("2006-01-02 15:04"), r.until.UTC().Format("2006-01-02 15:04")))
	}
	out := period.Report()
	if out.RecordedSeconds == 0 {
		return out, usage(fmt.Errorf("nothing was recorded from %s to %s: the timeline reaches from %s to %s", r.since.UTC().Format("2006-01-02 15:04"),
			r.until.UTC().Format("2006-01-02 15:04"), first.UTC().Format("2006-01-02 15:04"), last.UTC().Format("2006-01-02 15:04")))
	}
	out.Unread = r.bad
	return out, nil
}
