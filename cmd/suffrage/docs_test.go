package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are all that people read, with paths from the top of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "CONTRIBUTING.md", "mesh-tests/README.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			out = append(out, strings.TrimPrefix(path, "../../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The index names every page, and no link of any page leads nowhere.
func TestDocsAreLinked(t *testing.T) {
	index := contentOf(t, "../../docs/README.md")
	for _, page := range pages(t) {
		if name, ok := strings.CutPrefix(page, "docs/"); ok && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)\s#:]+)(#[^)\s]*)?\)`).FindAllStringSubmatch(contentOf(t, "../../"+page), -1) {
			if _, err := os.Stat(filepath.Join("../..", filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, link[1], err)
			}
		}
	}
}

// block is a fenced part of a page.
type block struct {
	line     int // of its first line
	language string
	text     string
}

// blocks are those of a page, in order. One may be indented, in a list.
func blocks(page string) (out []block) {
	var in *block
	indent := ""
	n := 0
	for line := range strings.Lines(page) {
		n++
		fence := strings.TrimSpace(line)
		switch {
		case in == nil && strings.HasPrefix(fence, "```"):
			indent = line[:strings.Index(line, "```")]
			in = &block{line: n + 1, language: fence[3:]}
		case in == nil:
		case fence == "```":
			out, in = append(out, *in), nil
		default:
			in.text += strings.TrimPrefix(line, indent)
		}
	}
	return out
}

// commands are the lines of a block, those that go on behind a backslash as one,
// without a prompt and what is said behind a #.
func (b block) commands() (out []string) {
	text := strings.ReplaceAll(b.text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimPrefix(line, "$ "), " # ")
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
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
		// The last one: it is also the name of a user.
		for at := len(w) - 1; at >= 0; at-- {
			if filepath.Base(w[at]) == "suffrage" && (at == 0 || w[at-1] != "-u" && !slices.Contains([]string{"install", "chown", "ln"}, w[0])) {
				out = append(out, w[at+1:])
				break
			}
		}
	}
	return out
}

// unparsed are lines that no parser of flags takes, each with its reason. There
// are few, and none that a reader would type.
var unparsed = map[string]string{
	`suffrage() { ./suffrage "$@" --config /tmp/fleet/h1/suffrage.yaml; }`: "it makes the other commands shorter; the run of the page goes through it",
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
	for _, page := range pages(t) {
		if page == "docs/reference/commands.md" {
			continue // it is the program's own words; their examples come below
		}
		for _, b := range blocks(contentOf(t, "../../"+page)) {
			if slices.Contains([]string{"yaml", "json", "go", "ini", "promql"}, b.language) {
				continue
			}
			for _, line := range b.commands() {
				if b.language == "text" && !strings.HasPrefix(line, "suffrage ") && !strings.HasPrefix(line, "./suffrage ") {
					continue // what a program says
				}
				if unparsed[line] != "" {
					used[line] = true
					continue
				}
				check(fmt.Sprintf("%s:%d", page, b.line), line)
			}
		}
	}
	for _, c := range shown(newRoot()) {
		for _, line := range (block{text: c.Example}).commands() {
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
