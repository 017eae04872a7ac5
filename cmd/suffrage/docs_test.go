package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"suffrage/mesh-tests/pages"
)

// The index names every page, and no link of any page leads nowhere.
func TestDocsAreLinked(t *testing.T) {
	index := contentOf(t, "../../docs/README.md")
	for _, page := range pages.All(t) {
		if name, ok := strings.CutPrefix(page, "docs/"); ok && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)\s#:]+)(#[^)\s]*)?\)`).FindAllStringSubmatch(pages.Read(t, page), -1) {
			if _, err := os.Stat(filepath.Join("../..", filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, link[1], err)
			}
		}
	}
}

// What stands twice in a table of commands or names is changed in one place.
func TestDocsTablesSayItOnce(t *testing.T) {
	for _, page := range pages.All(t) {
		seen := map[string]bool{}
		for line := range strings.Lines(pages.Read(t, page)) {
			if !strings.HasPrefix(line, "| ") {
				seen = map[string]bool{} // another table
				continue
			}
			first, _, _ := strings.Cut(line[2:], " |")
			if strings.HasPrefix(first, "`") && seen[first] {
				t.Errorf("%s has two rows for %s", page, first)
			}
			seen[first] = true
		}
	}
}

// words splits a command as a shell does, as far as pages need it.
func words(command string) (out []string) {
	word, in, quote := "", false, rune(0)
	for _, c := range command {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				out = append(out, word)
			}
			word, in = "", false
		default:
			word, in = word+string(c), true
		}
	}
	if in {
		out = append(out, word)
	}
	return out
}

// calls are the suffrage commands of a line: behind sudo and ssh, before and
// behind a pipe, up to where its output goes.
func calls(line string) (out [][]string) {
	for _, part := range regexp.MustCompile(`\s(?:\||&&|;)\s|\$\(|\)`).Split(line, -1) {
		w := words(part)
		if len(w) > 1 && w[0] == "kubectl" && w[1] != "suffrage" {
			continue // there it is the name of a namespace, and of a user
		}
		if at := slices.IndexFunc(w, func(w string) bool { return strings.HasPrefix(w, ">") || strings.HasPrefix(w, "<") }); at >= 0 {
			w = w[:at]
		}
		if w = behind(w); len(w) > 0 && filepath.Base(w[0]) == "suffrage" {
			out = append(out, w[1:])
		}
	}
	return out
}

// behind is what is left of a command without who runs it, and where.
func behind(w []string) []string {
	for len(w) > 1 {
		switch {
		case w[0] == "sudo" && w[1] == "-u" && len(w) > 2:
			w = w[3:]
		case w[0] == "ssh":
			w = w[2:]
		case w[0] == "sudo", w[0] == "kubectl":
			w = w[1:]
		default:
			return w
		}
	}
	return w
}

// unparsed are lines that no parser of flags takes, each with its reason. There
// are few, and none that a reader would type.
var unparsed = map[string]string{
	`suffrage() { ./suffrage "$@" --config /tmp/fleet/h1/suffrage.yaml; }`: "it makes the other commands shorter; the run of the page goes through it",
}

// mostNotRun is how many commands nothing runs, each with its reason. Of K3s alone
// there are six: none can be had here.
const mostNotRun = 24

// Every command of every page is run by a test, or it is said why it is not.
func TestDocsCommandsAreRun(t *testing.T) {
	tests := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../../mesh-tests/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, m := range regexp.MustCompile(`(?m)^func (?:\(\S+ \S+\) )?(\w+)\(`).FindAllStringSubmatch(contentOf(t, file), -1) {
				tests[m[1]] = true
			}
		}
	}
	ci := contentOf(t, "../../.ci/run")
	shown, not, n := map[string]bool{}, map[string]string{}, 0
	for _, page := range pages.All(t) {
		for _, c := range pages.Commands(t, page) {
			where := fmt.Sprintf("%s:%d shows %q", page, c.Line, c.Text)
			n++
			shown[c.Text] = true
			if reason, is := pages.Not(c); is {
				not[c.Text] = reason
				continue
			}
			by := strings.Fields(pages.By(c))
			if len(by) == 0 {
				t.Errorf("%s, and nothing runs it: mesh-tests/pages says who does, or why nobody", where)
			}
			for _, name := range by {
				if name == pages.Stage && !regexp.MustCompile(`\b`+regexp.QuoteMeta(c.Text)+`\b`).MatchString(ci) {
					t.Errorf("%s, and .ci/run does not", where)
				}
				if name != pages.Stage && !tests[name] {
					t.Errorf("%s, and there is no %s that could run it", where, name)
				}
			}
		}
	}
	for command := range pages.Named() {
		if !shown[command] {
			t.Errorf("no page shows %q any more", command)
		}
	}
	if len(not) > mostNotRun {
		t.Errorf("%d commands are not run, at most %d may be", len(not), mostNotRun)
	}
	for command, reason := range not {
		t.Logf("not run: %s: %s", command, reason)
	}
	t.Logf("%d commands are shown, %d of them are not run", n, len(not))
}

// Every command in a fenced block of any page is one that the program takes:
// its words, flags and how many arguments.
func TestDocsShowCommandsThatParse(t *testing.T) {
	const mostUnparsed = 3
	if len(unparsed) > mostUnparsed {
		t.Errorf("%d lines are not parsed, at most %d may be", len(unparsed), mostUnparsed)
	}
	n, used := 0, map[string]bool{}
	check := func(where, line string) {
		for _, call := range calls(line) {
			n++
			if err := parses(call); err != nil {
				t.Errorf("%s shows %q: %v", where, line, err)
			}
		}
	}
	for _, page := range pages.All(t) {
		if page == "docs/reference/commands.md" {
			continue // it is the program's own words; their examples come below
		}
		for _, b := range pages.Blocks(pages.Read(t, page)) {
			if slices.Contains([]string{"yaml", "json", "go", "ini", "promql"}, b.Language) {
				continue
			}
			for _, line := range b.Commands() {
				if b.Language == "text" && !strings.HasPrefix(line, "suffrage ") && !strings.HasPrefix(line, "./suffrage ") {
					continue // what a program says
				}
				if unparsed[line] != "" {
					used[line] = true
					continue
				}
				check(fmt.Sprintf("%s:%d", page, b.Line), line)
			}
		}
	}
	for _, c := range shown(newRoot()) {
		for _, line := range (pages.Block{Text: c.Example}).Commands() {
			check(c.CommandPath()+" --help", line)
		}
	}
	for line := range unparsed {
		if !used[line] {
			t.Errorf("no page shows %q any more", line)
		}
	}
	if n < 80 {
		t.Errorf("only %d commands found", n)
	}
}

func parses(call []string) error {
	if len(call) == 0 || strings.HasPrefix(call[0], "[") || call[0] == "COMMAND" {
		return nil // a line of usage, not of use
	}
	root := newRoot()
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(call)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if help, _ := c.Flags().GetBool("help"); help {
		return nil
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return fmt.Errorf("%s: %w", c.CommandPath(), err)
	}
	return nil
}
