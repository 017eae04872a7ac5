package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"suffrage/membership"
)

func newDecideCmd() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "decide -f FILE",
		Short: "Decide from recorded inputs",
		Long: `Reads one inputs file (docs/inputs.md) and prints the decision, the same one that
the controller took from them. "-" reads from standard input.`,
		Example: "  suffrage decide -f inputs.json -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return usage(fmt.Errorf("name an inputs file: suffrage decide -f FILE"))
			}
			in, err := readInputs(c, file)
			if err != nil {
				return err
			}
			return printDecision(c, membership.Decide(in))
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", `the inputs file, or "-"`)
	return c
}

// Replayed is one line of `suffrage replay -o json`.
type Replayed struct {
	File     string              `json:"file"`
	Decision membership.Decision `json:"decision"`
}

func newReplayCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE|DIRECTORY...",
		Short: "Decide again from many recorded inputs, one line each",
		Long: `Decides again from recorded inputs, in the order of their times: a directory
stands for the inputs files in it. One line per decision; -o json prints one
JSON object per line. Ages are those that were recorded. A file that cannot be
read is named on stderr, the others are still decided, and the exit code is 2.`,
		Example: "  suffrage replay /var/lib/suffrage/decisions\n  suffrage replay night.inputs.json -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := inputFiles(args)
			if err != nil {
				return usage(err)
			}
			defer noteSlow(c, fmt.Sprintf("still deciding again, from %d records", len(files)))()
			bad := 0
			for _, f := range files {
				in, err := readInputs(c, f)
				if err != nil { // one bad file must not hide the night that the others hold
					fmt.Fprintln(c.ErrOrStderr(), "suffrage:", err)
					bad++
					continue
				}
				d := membership.Decide(in)
				if wantsJSON(c) {
					if err := printLine(c.OutOrStdout(), Replayed{f, d}); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", d.At.Local().Format("2006-01-02 15:04:05"), brief(d))
			}
			if bad > 0 {
				return usage(fmt.Errorf("%d of %d files could not be decided again", bad, len(files)))
			}
			return nil
		},
	}
}

// brief is a decision on one line.
func brief(d membership.Decision) string {
	switch d.Kind {
	case membership.Steady:
		return "steady"
	case membership.Planned:
		return "would " + d.Plan.String() + ": " + d.Plan.Why
	}
	parts := make([]string, len(d.Refusals))
	for i, r := range d.Refusals {
		parts[i] = string(r.Code)
		if r.Subject != "" {
			parts[i] += "(" + r.Subject + ")"
		}
	}
	return "refused: " + strings.Join(parts, " ")
}

func inputFiles(args []string) ([]string, error) {
	var files []string
	for _, a := range args {
		info, err := os.Stat(a)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, a)
			continue
		}
		in, err := filepath.Glob(filepath.Join(a, "*.inputs.json"))
		if err != nil {
			return nil, err
		}
		if len(in) == 0 {
			return nil, fmt.Errorf("%s holds no inputs files (*.inputs.json)", a)
		}
		slices.Sort(in) // their names begin with the time
		files = append(files, in...)
	}
	return files, nil
}

func readInputs(c *cobra.Command, file string) (membership.Inputs, error) {
	r := c.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return membership.Inputs{}, usage(err)
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, membership.MaxInputs+1))
	if err != nil {
		return membership.Inputs{}, fmt.Errorf("%s: %w", file, err)
	}
	in, err := membership.ReadInputs(data)
	if err != nil {
		return membership.Inputs{}, usage(fmt.Errorf("%s: %w", file, err))
	}
	return in, nil
}
