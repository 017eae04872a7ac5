package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"suffrage/mesh-tests/pages"
)

// sources are the functions of one folder's tests: what each says in string literals, in
// their order, and which others it calls.
type sources map[string]*function

type function struct {
	says  string
	calls []string
}

// sourcesIn reads a folder's tests.
func sourcesIn(t *testing.T, dir string) sources {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := sources{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, is := d.(*ast.FuncDecl); is && d.Body != nil {
				out[d.Name.Name] = read(d)
			}
		}
	}
	scripts, err := filepath.Glob(filepath.Join(dir, "testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range scripts {
		out["TestScript"].says += contentOf(t, file)
	}
	return out
}

func read(d *ast.FuncDecl) *function {
	f := &function{}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				f.says += "\x00" + text + "\x00"
			}
		case *ast.Ident:
			f.calls = append(f.calls, n.Name)
		}
		return true
	})
	return f
}

// say reports whether a test, or what it calls in its folder, has a command's words: as
// arguments next to each other, at the beginning of a text, or behind the program's name.
func (s sources) say(test, words string) bool {
	return s.match(test, regexp.MustCompile(`(\x00|suffrage )`+strings.ReplaceAll(regexp.QuoteMeta(words), " ", `(\x00\x00| )`)+`(\x00|\s)`))
}

// match reports whether a test, or what it calls in its folder, has what fits.
func (s sources) match(test string, is *regexp.Regexp) bool {
	seen := map[string]bool{}
	var in func(name string) bool
	in = func(name string) bool {
		f := s[name]
		if f == nil || seen[name] {
			return false
		}
		seen[name] = true
		if is.MatchString(f.says) {
			return true
		}
		for _, c := range f.calls {
			if in(c) {
				return true
			}
		}
		return false
	}
	return in(test)
}

// verbOf is the command that words name, "operations stop" of `operations stop ID`;
// nothing for words that are none, and for a group of commands.
func verbOf(call []string) string {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find(call)
	if err != nil || c == root || c.HasSubCommands() {
		return ""
	}
	return strings.TrimPrefix(c.CommandPath(), root.Name()+" ")
}

// folders are the tests of several folders.
type folders []sources

func allSources(t *testing.T) (all folders) {
	t.Helper()
	dirs, err := filepath.Glob("../../mesh-tests/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range append([]string{"."}, dirs...) {
		all = append(all, sourcesIn(t, dir))
	}
	return all
}

func (all folders) say(test, words string) bool {
	return slices.ContainsFunc(all, func(s sources) bool { return s.say(test, words) })
}

// has reports whether a test, or what it calls in its folder, has this text anywhere.
func (all folders) has(test, text string) bool {
	return slices.ContainsFunc(all, func(s sources) bool { return s.match(test, regexp.MustCompile(regexp.QuoteMeta(text))) })
}

// A test that types what pages show reads the page, or has the command as the page does.
func TestDocsPagesAreRead(t *testing.T) {
	all := allSources(t)
	on := map[string][]string{}
	for _, page := range pages.All(t) {
		for _, c := range pages.Commands(t, page) {
			on[c.Text] = append(on[c.Text], page)
			if strings.HasPrefix(page, "docs/runbooks/") {
				on[c.Text] = append(on[c.Text], "docs/runbooks/") // all of them
			}
		}
	}
	for text, shown := range on {
		for _, test := range strings.Fields(pages.By(pages.Command{Page: shown[0], Text: text})) {
			if !pages.Typing(test) || all.has(test, text) || slices.ContainsFunc(shown, func(page string) bool { return all.has(test, page) }) {
				continue
			}
			t.Errorf("%s shows %q, and %s reads neither this page nor has the command", shown[0], text, test)
		}
	}
}

// Every verb that a page names, in a fence or in its text, is run by a test: one that
// types it from a page, or one that has its words.
func TestDocsVerbsAreRun(t *testing.T) {
	says := allSources(t).say
	typed, named := map[string]bool{}, map[string]string{}
	for _, page := range pages.All(t) {
		for _, c := range pages.Commands(t, page) {
			where := fmt.Sprintf("%s:%d shows %q", page, c.Line, c.Text)
			for _, call := range calls(c.Text) {
				verb := verbOf(call)
				for _, test := range strings.Fields(pages.By(c)) {
					switch _, not := pages.Not(c); {
					case not || verb == "":
					case pages.Typing(test):
						typed[verb] = true
					case test != pages.Stage && !says(test, verb):
						t.Errorf("%s, and %s, which is said to run it, has no %q", where, test, verb)
					}
				}
			}
		}
		if page == "docs/reference/commands.md" {
			continue // it is the program's own words
		}
		for _, c := range pages.Inline(t, page) {
			for _, call := range calls(c.Text) {
				if verb := verbOf(call); verb != "" {
					named[verb] = fmt.Sprintf("%s:%d names %q", page, c.Line, c.Text)
				}
			}
		}
	}
	for verb, where := range named {
		test := pages.Verb(verb)
		switch {
		case typed[verb] && test != "":
			t.Errorf("%q has %s in mesh-tests/pages, and is typed from a page", verb, test)
		case typed[verb]:
		case test == "":
			t.Errorf("%s, and no test runs %q: mesh-tests/pages says which does", where, verb)
		case !says(test, verb):
			t.Errorf("%s, and %s, which is said to run it, has no %q", where, test, verb)
		}
	}
	for verb := range pages.Verbs() {
		if named[verb] == "" {
			t.Errorf("no page names %q any more", verb)
		}
	}
	t.Logf("%d verbs are named within text, %d of them in words of a test", len(named), len(pages.Verbs()))
}
