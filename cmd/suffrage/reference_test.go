package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/reference anew")

// docs/reference is what the program says of itself:
// go test ./cmd/suffrage -run TestReference -rewrite
func TestReferenceIsWhatTheProgramSays(t *testing.T) {
	for name, want := range map[string]string{"commands.md": commandPage(), "configuration.md": configurationPage()} {
		file := filepath.Join("../../docs/reference", name)
		if *rewrite {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what the code says (%v): go test ./cmd/suffrage -run TestReference -rewrite", file, err)
		}
	}
}

const generated = "<!-- Written by go test ./cmd/suffrage -run TestReference -rewrite; change the code, not this page. -->\n"

func commandPage() string {
	root := newRoot()
	all := shown(root)
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Commands

%s
What each `+"`--help`"+` says, on one page. Exit codes and the forms of `+"`-o json`"+` are in [commands.md](../commands.md).

All take:

%s
| command | what it is for |
| --- | --- |
`, generated, fence(root.PersistentFlags().FlagUsages()))
	for _, c := range all {
		if !c.HasSubCommands() || c.Long != "" {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", strings.TrimPrefix(c.CommandPath(), "suffrage "), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
		}
	}
	for _, c := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s", c.CommandPath(), fence(about(c)))
		if !c.HasSubCommands() {
			fmt.Fprintf(&b, "\n%s", fence(c.UseLine()+"\n\n"+own(c)))
		}
		fmt.Fprintf(&b, "\nExample:\n\n%s", fence(unindent(c.Example)))
	}
	return b.String()
}

func configurationPage() string {
	return "# Configuration\n\n" + generated + `
The settings file of a host, by default ` + "`" + defaultConfig + "`" + `: every key with its meaning and its default, as
` + "`suffrage config example`" + ` prints it. What you leave out is as here. An unknown key is an error that names the
nearest known one; ` + "`suffrage config check`" + ` looks at all of a file.

` + "```yaml\n" + strings.TrimRight(exampleConfig, "\n") + "\n```\n"
}

func fence(text string) string { return "```text\n" + strings.Trim(text, "\n") + "\n```\n" }

func unindent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	return b.String()
}

// Every command that a page, a rule or a panel shows is there, with its flags.
func TestDocsShowRealCommands(t *testing.T) {
	files := []string{"../../README.md", "../../CONTRIBUTING.md", "../../mesh-tests/README.md", "../../deploy/prometheus/suffrage.rules.yml"}
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		// The reference is the program's own words, prose among them.
		if strings.HasSuffix(path, ".md") && filepath.Base(filepath.Dir(path)) != "reference" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		for _, command := range commandsIn(contentOf(t, file)) {
			n++
			if err := exists(command); err != nil {
				t.Errorf("%s shows %q: %v", file, strings.Join(command, " "), err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands found", n)
	}
}

// code is what stands between backquotes, and lines of fenced blocks.
var code = regexp.MustCompile("(?s)```.*?\n```|`[^`\n]+`")

// commandsIn gives the words behind each suffrage that is followed by a word, but
// for the user of that name.
func commandsIn(page string) (out [][]string) {
	for _, span := range code.FindAllString(page, -1) {
		for line := range strings.Lines(span) {
			line, _, _ = strings.Cut(line, " # ")
			for _, part := range regexp.MustCompile(`[|;()]|&&|\$\(`).Split(strings.Trim(line, "`\n"), -1) {
				words := strings.Fields(part)
				at := len(words) - 1
				for ; at >= 0 && filepath.Base(words[at]) != "suffrage"; at-- {
				}
				if at > 0 && words[at-1] == "-u" {
					continue
				}
				if rest := words[at+1:]; at >= 0 && len(rest) > 0 && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(rest[0]) {
					out = append(out, rest)
				}
			}
		}
	}
	return out
}

func exists(words []string) error {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if c.HasSubCommands() && len(rest) > 0 && regexp.MustCompile(`^[a-z]`).MatchString(rest[0]) {
		return fmt.Errorf("%s has no command %s", c.CommandPath(), rest[0])
	}
	for _, w := range rest {
		name, found := strings.CutPrefix(w, "--")
		name, _, _ = strings.Cut(strings.TrimRight(name, ",.)"), "=")
		if !found || name == "" || slices.Contains([]string{"help", "version"}, name) {
			continue
		}
		if c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			return fmt.Errorf("%s has no flag --%s", c.CommandPath(), name)
		}
	}
	return nil
}
