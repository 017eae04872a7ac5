package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestManPages(t *testing.T) {
	dir := t.TempDir()
	var out, notes bytes.Buffer
	if code := run(t.Context(), []string{"man", dir}, &out, &notes); code != exitOK {
		t.Fatalf("code %d: %s", code, notes.String())
	}
	for _, c := range shown(newRoot()) {
		file := filepath.Join(dir, "man1", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		page := contentOf(t, file)
		if !strings.Contains(page, "\n.SH DESCRIPTION\n") || !strings.Contains(page, "\n.SH EXAMPLES\n") {
			t.Errorf("%s lacks a section", file)
		}
		_, status, _ := strings.Cut(page, "\n.SH EXIT STATUS\n.nf\n")
		status, _, _ = strings.Cut(status, "\n.fi")
		for _, code := range regexp.MustCompile(`(?:Exit codes: |; )([0-9]) `).FindAllStringSubmatch(strings.Join(strings.Fields(c.Long), " "), -1) {
			if !regexp.MustCompile(`(?m)^` + code[1] + "  [^ ]").MatchString(status) {
				t.Errorf("%s does not say what exit status %s is:\n%s", file, code[1], status)
			}
		}
		if strings.Contains(page, "Exit codes:") {
			t.Errorf("%s says it twice", file)
		}
	}
	if page := contentOf(t, filepath.Join(dir, "man1", "suffrage-member.1")); !strings.Contains(page, "\n3  fenced, or of a cluster that was replaced\n") {
		t.Errorf("exit status 3 of suffrage-member is not in\n%s", page)
	}
	if page := contentOf(t, filepath.Join(dir, "man5", "suffrage.yaml.5")); !strings.Contains(page, "election_timeout") {
		t.Error("the settings are not in suffrage.yaml.5")
	}
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("no groff here to read the pages with")
	}
	files, err := filepath.Glob(filepath.Join(dir, "man*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	// With -ww groff tells everything that it doubts.
	read := exec.Command("groff", append([]string{"-man", "-Kutf8", "-Tutf8", "-ww", "-P-c"}, files...)...)
	read.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var text, doubts bytes.Buffer
	read.Stdout, read.Stderr = &text, &doubts
	if err := read.Run(); err != nil || doubts.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, doubts.String())
	}
	if !strings.Contains(text.String(), "suffrage swap OUT IN") || !strings.Contains(text.String(), "--every") {
		t.Error("what groff shows is not what the help says")
	}
}

func TestExitStatus(t *testing.T) {
	for _, test := range []struct{ why, help, described, status string }{
		{"none is said", "It runs.", "It runs.", everyStatus},
		{"two, over lines", "It runs.\n\nExit codes: 0 it ran, and\nended; 3 fenced.", "It runs.\n\n", "0  it ran, and ended\n3  fenced\n"},
		{"more behind them", "Exit codes: 0 done; 2 wrong flags. docs/observe.md explains\neach.", "docs/observe.md explains each.\n", "0  done\n2  wrong flags\n"},
	} {
		if described, status := exitStatus(test.help); described != test.described || status != test.status {
			t.Errorf("%s: %q, %q", test.why, described, status)
		}
	}
}

func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		".TH is a request":    `\&.TH is a request`,
		"a\n'quoted\nb":       "a\n\\&'quoted\nb",
		`C:\x --every`:        `C:\ex \-\-every`,
		" .not at the margin": " .not at the margin",
	} {
		if got := roff(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
