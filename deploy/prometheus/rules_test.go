// Package prometheus is the alert rules and the scrape jobs for a fleet, and the
// tests that need nothing but files. That Prometheus agrees, and that alerts fire
// with a real fleet, is mesh-tests/prometheus.
package prometheus

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const runbooks = "../../docs/runbooks/"

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// A summary says whose trouble it is.
var about = regexp.MustCompile(`\$labels\.(host|instance|subject|out)\b|[Tt]he fleet`)

var severities = map[string]bool{"critical": true, "warning": true, "info": true}

func TestEveryAlertSaysWhoHowBadAndWhatToDo(t *testing.T) {
	known := metrics(t)
	for name, r := range rules(t) {
		if !strings.HasPrefix(name, "Suffrage") {
			t.Errorf("%s: other rules share its name space; begin with Suffrage", name)
		}
		if !severities[r.Labels["severity"]] {
			t.Errorf("%s has severity %q; there are %v", name, r.Labels["severity"], slices.Sorted(maps.Keys(severities)))
		}
		if !about.MatchString(r.Annotations["summary"]) {
			t.Errorf("%s: its summary names neither a host nor the fleet: %s", name, r.Annotations["summary"])
		}
		if r.Annotations["description"] == "" {
			t.Errorf("%s has no description", name)
		}
		if want := "file:///usr/local/share/doc/suffrage/runbooks/" + name + ".md"; r.Annotations["runbook_url"] != want {
			t.Errorf("%s links %s, want %s", name, r.Annotations["runbook_url"], want)
		}
		used := metricName.FindAllString(r.Expr, -1)
		if len(used) == 0 && !strings.Contains(r.Expr, `{job="suffrage-member"}`) {
			t.Errorf("%s asks for no metric of ours, nor of the members: %s", name, r.Expr)
		}
		for _, m := range used {
			if !known[m] {
				t.Errorf("%s asks for %s, which docs/metrics.md does not have", name, m)
			}
		}
	}
}

// What every runbook answers, in this order.
var questions = []string{"\n## What it means\n", "\n## How to see it\n", "\n## What to do\n", "\n## When to do nothing\n"}

func TestEveryAlertHasARunbookAndTheOtherWayRound(t *testing.T) {
	all := rules(t)
	files, err := filepath.Glob(runbooks + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".md")
		found[name] = true
		r, ok := all[name]
		if !ok {
			t.Errorf("%s is about no alert", f)
			continue
		}
		text := content(t, f)
		if !strings.HasPrefix(text, "# "+name+"\n\n"+r.Labels["severity"]) {
			t.Errorf("%s does not begin with the alert's name and its severity, %s", f, r.Labels["severity"])
		}
		at := 0
		for _, q := range questions {
			i := strings.Index(text, q)
			if i < at {
				t.Errorf("%s has no %q, or not in its place", f, strings.TrimSpace(q))
			}
			at = i
		}
		for _, m := range metricName.FindAllString(text, -1) {
			if !metrics(t)[m] {
				t.Errorf("%s names %s, which docs/metrics.md does not have", f, m)
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(runbooks, m[1])); err != nil {
				t.Errorf("%s links to nothing: %v", f, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !found[name] {
			t.Errorf("%s has no runbook", name)
		}
	}
}

// Each alert is in promtool's tests once where it must be quiet and once where it
// fires. `make prometheus` runs them.
func TestEveryAlertHasAUnitTest(t *testing.T) {
	var file struct {
		Tests []struct {
			Checks []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	read(t, "suffrage.rules.test.yml", &file)
	quiet, fires := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Checks {
			if len(c.Fires) > 0 {
				fires[c.Alert] = true
			} else {
				quiet[c.Alert] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules(t))) {
		if !quiet[name] || !fires[name] {
			t.Errorf("%s: tested quiet: %v, tested firing: %v", name, quiet[name], fires[name])
		}
	}
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	read(t, "suffrage.rules.yml", &file)
	out := map[string]rule{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if _, twice := out[r.Alert]; twice {
				t.Errorf("%s is there twice", r.Alert)
			}
			out[r.Alert] = r
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %d alerts found", len(out))
	}
	return out
}

// A name in an expression, in a runbook or on the page.
var metricName = regexp.MustCompile(`\bsuffrage_[a-z0-9_]+\b`)

// metrics are those of docs/metrics.md, which is compared with the code in
// cmd/suffrage.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(suffrage_\\w+)`").FindAllStringSubmatch(content(t, "../../docs/metrics.md"), -1) {
		out[m[1]] = true
	}
	return out
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(content(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
