package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// wantsJSON reports whether the command was asked for -o json.
func wantsJSON(c *cobra.Command) bool {
	o, _ := c.Flags().GetString("output")
	return o == "json"
}

// oneForm are the commands that refuse another form than text.
var oneForm = []string{"man", "top"}

// completeForms completes --output with the forms that a command has.
func completeForms(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	forms := []string{"text"}
	if !slices.Contains(oneForm, c.Name()) {
		forms = append(append(forms, "json"), strings.Fields(c.Annotations[moreForms])...)
	}
	return forms, cobra.ShellCompDirectiveNoFileComp
}

// printJSON writes the stable form: indented, one value.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// newLog logs to stderr in text; daemons hand it to the journal.
func newLog(c *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
}

// table writes rows in columns two spaces apart; the last column may be long.
func table(w io.Writer, rows [][]string) {
	var width []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			if i < len(r)-1 {
				width[i] = max(width[i], len([]rune(cell)))
			}
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(cell)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-len([]rune(cell))+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// textWidth is how wide text is where nobody knows better.
const textWidth = 80

// sheet is a writer that knows how wide it is, as a terminal's picture does.
type sheet struct {
	bytes.Buffer
	width int
}

// tableWidth is how wide a table of these rows gets.
func tableWidth(rows [][]string) int {
	var b bytes.Buffer
	table(&b, rows)
	most := 0
	for line := range strings.Lines(b.String()) {
		most = max(most, len([]rune(strings.TrimRight(line, "\n"))))
	}
	return most
}

// fit leaves columns out of a table until it is no wider than there is room for, those
// first that are named first, and gives the headings of those that went.
func fit(rows [][]string, width int, spare ...int) (_ [][]string, left []string) {
	gone := map[int]bool{}
	kept := rows
	for _, column := range spare {
		if tableWidth(kept) <= width {
			break
		}
		gone[column] = true
		left = append(left, rows[0][column])
		kept = nil
		for _, r := range rows {
			var row []string
			for i, cell := range r {
				if !gone[i] {
					row = append(row, cell)
				}
			}
			kept = append(kept, row)
		}
	}
	return kept, left
}

// wrapOn breaks text at the width of what it is written to.
func wrapOn(w io.Writer, text, indent string) string {
	if s, ok := w.(*sheet); ok {
		return wrapAt(s.width, text, indent)
	}
	return wrap(text, indent)
}

// wrap breaks text at 80 columns, each line behind the indent.
func wrap(text, indent string) string { return wrapAt(textWidth, text, indent) }

func wrapAt(width int, text, indent string) string {
	var out, line strings.Builder
	for _, word := range strings.Fields(text) {
		if line.Len() > 0 && len([]rune(indent))+len([]rune(line.String()))+1+len([]rune(word)) > width {
			fmt.Fprintf(&out, "%s%s\n", indent, line.String())
			line.Reset()
		}
		if line.Len() > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(word)
	}
	fmt.Fprintf(&out, "%s%s", indent, line.String())
	return out.String()
}

// ago is a time in local words: "12 s ago", "3 min ago", "Mon 14:05".
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	switch d := now.Sub(t); {
	case d < 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return t.Local().Format("15:04")
	case d < 7*24*time.Hour:
		return t.Local().Format("Mon 15:04")
	}
	return t.Local().Format("2 Jan 2006")
}

// printLine writes one value on one line, for streams of them.
func printLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
