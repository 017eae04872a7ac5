package main

import (
	"bytes"
	"strings"
	"testing"
)

// Under the name that kubectl looks for it says what is typed then.
func TestPlugin(t *testing.T) {
	for _, c := range []struct {
		why, path, words string
		code             int
		says             string
	}{
		{"by its own name", "/usr/local/bin/suffrage", "hots list", exitUsage, `suffrage: unknown command "hots" for "suffrage"; did you mean "host"?`},
		{"as a plugin", "/usr/local/bin/kubectl-suffrage", "hots list", exitUsage, `kubectl suffrage: unknown command "hots" for "kubectl suffrage"; did you mean "host"?`},
		{"on Windows", "kubectl-suffrage.exe", "host elligible h4", exitUsage, `unknown command "elligible" for "kubectl suffrage host"`},
		{"a wrong flag", "kubectl-suffrage", "status --colour", exitUsage, `see: kubectl suffrage status --help`},
		{"help", "kubectl-suffrage", "swap --help", exitOK, "  kubectl suffrage swap OUT IN [flags]"},
		{"examples", "kubectl-suffrage", "decide --help", exitOK, "  kubectl suffrage decide -f inputs.json"},
		{"the first page", "kubectl-suffrage", "--help", exitOK, "  kubectl suffrage status  "},
		{"what may follow, for kubectl", "/usr/local/bin/kubectl_complete-suffrage", "host el", exitOK, "eligible\t"},
	} {
		var out, errs bytes.Buffer
		name, args := called(c.path, strings.Fields(c.words))
		if code := runAs(t.Context(), name, args, &out, &errs); code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", c.why, code, c.code, c.says, &out, &errs)
		}
		if said := out.String() + errs.String(); name != "suffrage" && strings.Contains(said, "\n  suffrage ") {
			t.Errorf("%s: it shows a command by another name:\n%s", c.why, said)
		}
	}
}
