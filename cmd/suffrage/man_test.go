package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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
