package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// notRun are the commands of the pages below that are not run, each with its
// reason. The pages are for people, so there are few.
var notRun = map[string]string{
	"go build -o suffrage ./cmd/suffrage": "the test has built it",
	"./suffrage demo --dir /tmp/fleet --until stopped --slow h3=0s --stall-time 10s --mode dry-run": "the test has started it, with these flags",
	`suffrage() { ./suffrage "$@" --config /tmp/fleet/h1/suffrage.yaml; }`:                          "each command is run behind it",
	`suffrage target 5 --reason "two racks" --yes`:                                                  "TestFleetGrowsAndShrinks does it, in minutes",
	"suffrage standby prepare": needsRoot,
	"suffrage standby check":   needsRoot,
}

const mostNotRun = 6

// TestDocsRun types what the tutorial and the how-tos show, in their order, on a
// fleet, and compares what comes with what the page says comes.
func TestDocsRun(t *testing.T) {
	if len(notRun) > mostNotRun {
		t.Errorf("%d commands are not run, at most %d may be", len(notRun), mostNotRun)
	}
	shownIn := func(page string) string { return contentOf(t, "../../docs/"+page) }
	for command := range notRun {
		if !slices.ContainsFunc([]string{"tutorial.md", "howto.md"}, func(page string) bool {
			return slices.ContainsFunc(blocks(shownIn(page)), func(b block) bool { return slices.Contains(b.commands(), command) })
		}) {
			t.Errorf("no page shows %q any more", command)
		}
	}
	inFull(t)
	for _, page := range []string{"tutorial.md", "howto.md"} {
		t.Run(page, func(t *testing.T) {
			f := newOwnersFleet(t)
			f.start("--until", "stopped", "--slow", "h3=0s", "--stall-time", "10s", "--mode", "dry-run")
			all := blocks(shownIn(page))
			for i, b := range all {
				if b.language == "text" {
					if i == 0 || all[i-1].language != "sh" {
						t.Errorf("docs/%s:%d: what no command said", page, b.line)
					}
					continue
				}
				want := ""
				if i+1 < len(all) && all[i+1].language == "text" {
					want = all[i+1].text
				}
				commands := b.commands()
				for n, command := range commands {
					if notRun[command] != "" {
						t.Logf("not run: %s: %s", command, notRun[command])
						continue
					}
					if n < len(commands)-1 {
						f.typed(t, page, b.line, command, "")
						continue
					}
					f.typed(t, page, b.line, command, want)
				}
			}
		})
	}
}

// typed runs one command in a shell until it does what the page shows. What a
// loaded machine refuses for now (a candidate that is slow for a moment) is asked
// for again: a refusal changed nothing.
func (f *ownersFleet) typed(t *testing.T, page string, line int, command, want string) {
	t.Helper()
	leader := "h1"
	if found, _ := filepath.Glob(filepath.Join(f.dir, "h*", "data", "decisions", "*.inputs.json")); len(found) > 0 {
		leader = filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(found[0]))))
	}
	t.Logf("docs/%s:%d: %s", page, line, command)
	typed := strings.NewReplacer("/tmp/fleet", f.dir, "/var/lib/suffrage", filepath.Join(f.dir, leader, "data")).Replace(command)
	script := fmt.Sprintf("suffrage() { %q \"$@\" --config %q; }\n%s", f.program, filepath.Join(f.dir, "h1", "suffrage.yaml"), typed)
	var said []byte
	var err error
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		said, err = exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput()
		if asShown(string(said), want) && (err == nil || strings.Contains(want, "dry-run")) {
			return
		}
		if out := regexp.MustCompile(`swap \S+ (\S+)`).FindStringSubmatch(command); out != nil && bytes.Contains(said, []byte("undone")) {
			f.run("h1", "clear-quarantine", out[1]) // it turned back, as it should where the newcomer is slow
		}
	}
	t.Fatalf("docs/%s:%d: %s (%v) said\n%s\nthe page shows\n%s", page, line, command, err, said, want)
}

// asShown: each line of the page is in what was said, in that order. "…" stands
// for anything within a line, and alone for any lines.
func asShown(said, want string) bool {
	rest := strings.Split(said, "\n")
	loose := false
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if line == "…" {
			loose = true
			continue
		}
		var parts []string
		for part := range strings.SplitSeq(line, "…") {
			parts = append(parts, regexp.QuoteMeta(strings.Join(strings.Fields(part), " ")))
		}
		is := regexp.MustCompile("^ ?" + strings.Join(parts, ".*") + " ?$")
		at := slices.IndexFunc(rest, func(s string) bool { return is.MatchString(strings.Join(strings.Fields(s), " ")) })
		if at < 0 || !loose && strings.TrimSpace(strings.Join(rest[:at], "")) != "" {
			return false
		}
		rest, loose = rest[at+1:], false
	}
	return loose || want == "" || strings.TrimSpace(strings.Join(rest, "")) == ""
}

func TestAsShown(t *testing.T) {
	for _, test := range []struct {
		why, said, want string
		is              bool
	}{
		{"nothing is shown", "anything\n", "", true},
		{"the same", "a b\nc\n", "a  b\nc\n", true},
		{"another", "a\n", "b\n", false},
		{"within a line", "h1  voter  fit\n", "h1…fit\n", true},
		{"lines between", "a\nb\nc\n", "a\n…\nc\n", true},
		{"lines that the page leaves out without saying so", "a\nb\nc\n", "a\nc\n", false},
		{"lines behind", "a\nb\n", "a\n", false},
		{"lines behind, left out", "a\nb\n", "a\n…\n", true},
		{"in another order", "b\na\n", "…\na\nb\n…\n", false},
	} {
		if got := asShown(test.said, test.want); got != test.is {
			t.Errorf("%s: %v", test.why, got)
		}
	}
}
