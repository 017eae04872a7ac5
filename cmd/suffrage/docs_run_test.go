package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/mesh-tests/pages"
)

// TestDocsRun types what the tutorial and the how-tos show, in their order, on a
// fleet, and compares what comes with what the page says comes; then, on the same
// fleet, what the other pages show of commands that need one.
func TestDocsRun(t *testing.T) {
	amongOthers(t)
	for _, page := range []string{"docs/tutorial.md", "docs/howto.md"} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			f := newOwnersFleet(t)
			f.start("--until", "stopped", "--slow", "h3=0s", "--stall-time", "10s", "--mode", "dry-run")
			if err := os.MkdirAll(filepath.Join(f.dir, "client"), 0o750); err != nil { // where it is typed
				t.Fatal(err)
			}
			observed := func() {}
			if page == "docs/howto.md" {
				observed = f.observed(t)
			}
			f.follow(t, page)
			if page == "docs/howto.md" {
				f.others(t)
			}
			observed()
		})
	}
}

// follow types a page from its beginning to its end.
func (f *ownersFleet) follow(t *testing.T, page string) {
	t.Helper()
	all := pages.Blocks(pages.Read(t, page))
	for i, b := range all {
		if !b.Typed() {
			if i == 0 || !all[i-1].Typed() {
				t.Errorf("%s:%d: what no command said", page, b.Line)
			}
			continue
		}
		want := ""
		if i+1 < len(all) && all[i+1].Language == "text" {
			want = all[i+1].Text
		}
		commands := b.Commands()
		for n, text := range commands {
			c := pages.Command{Page: page, Line: b.Line, Text: text}
			if by := pages.By(c); by != pages.Run {
				t.Logf("%s:%d: %s: %s", page, b.Line, text, by)
				continue
			}
			if n < len(commands)-1 {
				f.typed(t, c, "h1", "")
				continue
			}
			f.typed(t, c, "h1", want)
		}
	}
}

// typed runs one command in a shell until it does what the page shows. What a
// loaded machine refuses for now (a candidate that is slow for a moment) is asked
// for again: a refusal changed nothing.
func (f *ownersFleet) typed(t *testing.T, c pages.Command, host, want string) {
	t.Helper()
	t.Logf("%s:%d: %s", c.Page, c.Line, c.Text)
	want = strings.ReplaceAll(want, "127.0.1.", f.network()) // it may be another fleet's
	var said []byte
	var err error
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		said, err = f.shell(t, host, c.Text).CombinedOutput()
		if asShown(string(said), want) && (err == nil || strings.Contains(want, "dry-run")) {
			return
		}
		if out := regexp.MustCompile(`swap \S+ (\S+)`).FindStringSubmatch(c.Text); out != nil && bytes.Contains(said, []byte("undone")) {
			f.run("h1", "clear-quarantine", out[1]) // it turned back, as it should where the newcomer is slow
		}
	}
	t.Fatalf("%s:%d: %s (%v) said\n%s\nthe page shows\n%s", c.Page, c.Line, c.Text, err, said, want)
}

// shell is a command of a page, as it is typed on a host of the fleet.
func (f *ownersFleet) shell(t *testing.T, host, command string) *exec.Cmd {
	now := time.Now()
	day := func(d int) string { return now.AddDate(0, 0, d).Format(time.DateOnly) }
	etcd := "https://" + f.network() + "1:"
	command = strings.NewReplacer("/tmp/fleet", f.dir, "ssh h1 sudo tar -C /var/lib/suffrage", "ssh h1 sudo tar -C "+filepath.Join(f.dir, "h1", "data"),
		"ssh h2 sudo tar -C /var/lib/suffrage", "ssh h2 sudo tar -C "+filepath.Join(f.dir, "h2", "data"),
		"ssh h3 sudo tar -C /var/lib/suffrage", "ssh h3 sudo tar -C "+filepath.Join(f.dir, "h3", "data"), "/var/lib/suffrage", filepath.Join(f.dir, f.recorded(), "data"),
		"2026-11-01", day(-1), "2026-11-29", day(1), "--drill FILE", "--drill "+f.snapshot(), "restore FILE", "restore "+f.snapshot(), "/tmp/looked-at", filepath.Join(f.dir, "client", "looked-at"), "-o suffrage ./cmd", "-C "+top(t)+" -o "+filepath.Join(f.dir, "client", "suffrage")+" ./cmd",
		"https://10.0.0.1:", etcd, "https://127.0.0.1:", etcd, "/etc/kubernetes/pki/etcd", filepath.Join(f.dir, "client")).Replace(command)
	script := fmt.Sprintf(`suffrage() {
  case $1 in
  identity) %[1]q "$@" --dir %[3]q ;;
  *) %[1]q "$@" --config %[2]q ;;
  esac
}
sudo() { if [ "$1" = -u ]; then shift 2; fi; "$@"; }
ssh() { shift; "$@"; }
%[4]s`, f.program, filepath.Join(f.dir, host, "suffrage.yaml"), filepath.Join(f.dir, host), command)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = filepath.Join(f.dir, "client")
	return cmd
}

// top is the repository's.
func top(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// snapshot is one that h1 has saved; FILE until there is any.
func (f *ownersFleet) snapshot() string {
	found, _ := filepath.Glob(filepath.Join(f.dir, "h1", "data", "snapshots", "*.db"))
	if len(found) == 0 {
		return "FILE"
	}
	return found[len(found)-1]
}

// recorded is a host whose controller has written down a decision.
func (f *ownersFleet) recorded() string {
	found, _ := filepath.Glob(filepath.Join(f.dir, "h*", "data", "decisions", "*.inputs.json"))
	if len(found) == 0 {
		return "h1"
	}
	return filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(found[0]))))
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
