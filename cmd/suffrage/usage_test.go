package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A script that mistypes must not take the help for success.
func TestWrongWordsEndWithTwo(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"no-such", "unknown command"},
		{"host elligible h4", `did you mean "eligible"`},
		{"host", ""}, // asks for nothing: help, no mistake
		{"identity ca foo", "see: suffrage identity ca --help"},
		{"snapshot foo", "unknown command"},
		{"status x", "unknown command"},
		{"replay", "requires at least 1 arg"},
		{"explain", "takes 1 argument"},
		{"plan --nope", "unknown flag"},
		{"status -o yaml", "allowed are text and json"},
		{"identity init", "--host and --address are needed"},
		{"demo --for -1s", "for -1s: allowed"},
		{"host pin h3 --reason a\x1b[31m", "printable"}, // it would colour everybody's terminal
		{"host pin h3 --by " + strings.Repeat("a", 501), "at most 500"},
		{"demo --slow h3", "HOST=DURATION"},
		{"swap h2", "takes 2 argument"},
		{"swap h2 h2", "cannot take its own place"},
		{"swap h2 h5 --by controller", "no person"},
		{"swap h2 h5 --reason a\x1b[31m", "printable"},
		{"target many", "want a number of voters"},
		{"target 0", "want a number of voters"},
		{"target 3 5", "takes one number"},
		{"target 5 --by controller", "no person"},
		{"remove-dead", "takes 1 argument"},
		{"remove-dead h3 --yes", "unknown flag"}, // only the exact text will do
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(test.args), &out, &errs)
		want := exitUsage
		if test.want == "" {
			want = exitOK
		}
		if code != want || !strings.Contains(errs.String(), test.want) {
			t.Errorf("suffrage %s: code %d, said %q; want %d and %q", test.args, code, errs.String(), want, test.want)
		}
	}
}

func TestEveryCommandShowsAnExample(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if c.HasParent() && !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: its help has no example of it", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

// The page of exit codes has every one that the program ends with.
func TestExitCodesAreDocumented(t *testing.T) {
	page := contentOf(t, "../../docs/commands.md")
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitFenced} {
		if !strings.Contains(page, fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/commands.md has no row for exit code %d", code)
		}
	}
	constants := regexp.MustCompile(`(?m)^\texit\w+ += \d+`).FindAllString(contentOf(t, "main.go"), -1)
	if len(constants) != 4 {
		t.Errorf("main.go has the codes %q: name the new one here and in docs/commands.md", constants)
	}
}

// Only top paints, and top asks NO_COLOR: nothing else sends a terminal anything
// but text, so there is nothing else to ask.
func TestOnlyTopPaints(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f, "top") || strings.HasSuffix(f, "_test.go") {
			continue
		}
		if strings.Contains(contentOf(t, f), `\x1b`) || strings.Contains(contentOf(t, f), `\033`) {
			t.Errorf("%s paints: let it respect NO_COLOR, and a terminal only", f)
		}
	}
}

// What -o is completed with is what a command takes, and all of it.
func TestFormsAreCompleted(t *testing.T) {
	for _, c := range shown(newRoot()) {
		if c.HasSubCommands() {
			continue
		}
		words := strings.Fields(c.CommandPath())[1:]
		var out, notes bytes.Buffer
		if code := run(t.Context(), append(append([]string{"__complete"}, words...), "-o", ""), &out, &notes); code != exitOK {
			t.Fatalf("%s: code %d: %s", c.CommandPath(), code, notes.String())
		}
		got := strings.Fields(out.String())
		want := []string{"text", "json", ":4"} // no files
		switch c.CommandPath() {
		case "suffrage man", "suffrage top":
			want = []string{"text", ":4"}
		case "suffrage report":
			want = []string{"text", "json", "table", "html", ":4"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s -o is completed with %q, want %q", c.CommandPath(), got, want)
		}
		for _, form := range got[:len(got)-1] {
			root := newRoot()
			sub, _, err := root.Find(words)
			if err == nil {
				err = errors.Join(sub.ParseFlags([]string{"-o", form}), root.PersistentPreRunE(sub, nil))
			}
			if err != nil {
				t.Errorf("%s -o %s: %v", c.CommandPath(), form, err)
			}
		}
	}
}
