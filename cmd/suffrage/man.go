package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newManCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of every command into a directory",
		Long: `Writes suffrage.1, one page for each command (man suffrage-status), and
suffrage.yaml.5 with every setting. Pages that are there are written anew.

Exit codes: 0 written; 1 the directory cannot be written, with the reason; 2 wrong
arguments.`,
		Example: "  suffrage man /usr/local/share/man\n  man suffrage-status",
		Args:    exactly("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if wantsJSON(c) {
				return usage(errors.New("man pages have one form; -o json is for answers"))
			}
			pages := manPages(c.Root())
			for name, text := range pages {
				dir := filepath.Join(args[0], "man"+strings.TrimPrefix(filepath.Ext(name), "."))
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return fmt.Errorf("man: %w", err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					return fmt.Errorf("man: %w", err)
				}
			}
			fmt.Fprintf(c.OutOrStdout(), "%d pages under %s\n", len(pages), args[0])
			return nil
		},
	}
}

// shown are the commands that a person has, in the order of the help.
func shown(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			out = append(append(out, sub), shown(sub)...)
		}
	}
	return out
}

// own are the flags of a command itself, as the help has them.
func own(c *cobra.Command) string {
	flags := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			flags.AddFlag(f)
		}
	})
	return flags.FlagUsages()
}

// about is what a command says of itself.
func about(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

// manPages are all pages by the name of their file. They hold no date and nothing
// of the machine: built twice, they are the same.
func manPages(root *cobra.Command) map[string]string {
	pages := map[string]string{"suffrage.yaml.5": manHead("suffrage.yaml", "5", "the settings of a host") +
		manSection("DESCRIPTION", "Every key with its meaning and its default. What is left out is as here.\n\n"+exampleConfig) +
		manSection("SEE ALSO", "suffrage-config-check(1)")}
	for _, c := range append([]*cobra.Command{root}, shown(root)...) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		also := []string{}
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
				also = append(also, name+"-"+sub.Name()+"(1)")
			}
		}
		if c.HasParent() {
			also = append(also, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-")+"(1)")
		}
		described, status := exitStatus(about(c))
		if described == "" { // it says nothing but its exit codes
			described = c.Short + "."
		}
		pages[name+".1"] = manHead(name, "1", c.Short) + manSection("SYNOPSIS", c.UseLine()) + manSection("DESCRIPTION", described) +
			manSection("OPTIONS", own(c)+"\nOf every command:\n\n"+root.PersistentFlags().FlagUsages()) +
			manSection("EXAMPLES", c.Example) +
			manSection("EXIT STATUS", status) +
			manSection("SEE ALSO", strings.Join(append(also, "suffrage.yaml(5)"), "\n"))
	}
	return pages
}

// everyStatus is the exit status of commands whose help does not say more.
const everyStatus = `0  done; a report was printed, whatever it says
1  it could not be done; stderr says why
2  the command line, or a file that a person wrote, is wrong`

// statusCode is the beginning of one code in what the help says of them all.
var statusCode = regexp.MustCompile(`(?:^|; )([0-9]) `)

// exitStatus takes what a help says of exit codes out of it, a line for each.
func exitStatus(help string) (described, status string) {
	described, codes, is := strings.Cut(help, "Exit codes: ")
	if !is {
		return help, everyStatus
	}
	codes, more, _ := strings.Cut(strings.Join(strings.Fields(codes), " "), ". ")
	codes = strings.TrimSuffix(codes, ".")
	if more != "" {
		described += wrap(more, "") + "\n"
	}
	starts := statusCode.FindAllStringSubmatchIndex(codes, -1)
	for i, at := range starts {
		end := len(codes)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		status += codes[at[2]:at[3]] + "  " + strings.TrimPrefix(wrap(codes[at[1]:end], "   "), "   ") + "\n"
	}
	return described, status
}

func manHead(name, section, short string) string {
	return fmt.Sprintf(".TH %s %s \"\" Suffrage\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(name)), section, roff(name), roff(short))
}

// manSection is a section as it stands in the help, line by line.
func manSection(title, text string) string {
	if text = strings.Trim(text, "\n"); text == "" {
		return ""
	}
	return ".SH " + title + "\n.nf\n" + roff(text) + "\n.fi\n"
}

// roff keeps text from being taken for requests (groff_man(7)).
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
