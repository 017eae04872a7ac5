package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// top is the repository's, as a test of a package two folders deep sees it.
const top = "../.."

// All are the pages that people read, with paths from the top of the repository.
func All(t testing.TB) []string {
	t.Helper()
	out := []string{"README.md", "CONTRIBUTING.md", "mesh-tests/README.md", "deploy/examples/three-plus-two/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages in %s: %v", pattern, err)
		}
		for _, page := range found {
			out = append(out, strings.TrimPrefix(page, top+"/"))
		}
	}
	return out
}

// Read gives a page's text.
func Read(t testing.TB, page string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(top, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Block is a fenced part of a page.
type Block struct {
	Line     int // of its first line
	Language string
	Text     string
}

// Blocks are those of a page, in order. One may be indented, in a list.
func Blocks(page string) (out []Block) {
	var in *Block
	indent := ""
	n := 0
	for line := range strings.Lines(page) {
		n++
		fence := strings.TrimSpace(line)
		switch {
		case in == nil && strings.HasPrefix(fence, "```"):
			indent = line[:strings.Index(line, "```")]
			in = &Block{Line: n + 1, Language: fence[3:]}
		case in == nil:
		case fence == "```":
			out, in = append(out, *in), nil
		default:
			in.Text += strings.TrimPrefix(line, indent)
		}
	}
	return out
}

// Typed reports whether a person types what is in the block: it has no language, or the
// shell's. What a program says is text.
func (b Block) Typed() bool { return b.Language == "" || b.Language == "sh" }

// Commands are what is typed in a block, without a prompt and what is said behind a #. In
// a block with prompts the other lines are what was said.
func (b Block) Commands() (out []string) {
	text := strings.ReplaceAll(b.Text, "\\\n", " ")
	prompts := strings.HasPrefix(text, "$ ")
	loop := ""
	for line := range strings.Lines(text) {
		if prompts && !strings.HasPrefix(line, "$ ") {
			continue
		}
		line, _, _ = strings.Cut(strings.TrimPrefix(line, "$ "), " # ")
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "for ") || loop != "" && line != "done":
			loop += line + "\n"
		case loop != "":
			out, loop = append(out, loop+line), ""
		default:
			out = append(out, line)
		}
	}
	return out
}

// Command is one that a page shows.
type Command struct {
	Page string
	Line int // of the first of its block
	Text string
}

// inline are commands within the text of a runbook, where there are no fences: whoever
// reads it is in a hurry.
var inline = regexp.MustCompile("`((?:suffrage|systemctl|journalctl|df|cat|grep|curl|etcdctl) [^`]+)`")

// named are commands of suffrage within the text of any page; one may go on in the next
// line.
var named = regexp.MustCompile("`(?:sudo )?(?:-u suffrage )?(?:\\./)?(suffrage [^`]+)`")

// Inline are the commands of suffrage that stand within a page's text.
func Inline(t testing.TB, page string) (out []Command) {
	t.Helper()
	n, text := 0, ""
	say := func() {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			out = append(out, Command{page, n, strings.Join(strings.Fields(m[1]), " ")})
		}
		text = ""
	}
	fenced := false
	for line := range strings.Lines(Read(t, page)) {
		n++
		if fence := strings.HasPrefix(strings.TrimSpace(line), "```"); fence || strings.TrimSpace(line) == "" {
			say() // up to the end of a paragraph
			fenced = fenced != fence
		} else if !fenced {
			text += line
		}
	}
	say()
	return out
}

// Commands are all that a page shows.
func Commands(t testing.TB, page string) (out []Command) {
	t.Helper()
	if strings.HasPrefix(page, "docs/runbooks/") {
		n := 0
		for line := range strings.Lines(Read(t, page)) {
			n++
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				out = append(out, Command{page, n, m[1]})
			}
		}
	}
	for _, b := range Blocks(Read(t, page)) {
		if !b.Typed() {
			continue
		}
		for _, text := range b.Commands() {
			out = append(out, Command{page, b.Line, text})
		}
	}
	return out
}

// Of are the commands of a page that a test runs, in the page's order. A page that shows
// none of them is a mistake of the test's.
func Of(t testing.TB, test, page string) (out []Command) {
	t.Helper()
	for _, c := range Commands(t, page) {
		if c.RunBy(test) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s shows nothing that %s runs", page, test)
	}
	return out
}
