package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programs gives the folder of prometheus and promtool, and suffrage.
func programs(t *testing.T) (folder, suffrage string) {
	t.Helper()
	folder, suffrage = os.Getenv("SUFFRAGE_PROMETHEUS"), os.Getenv("SUFFRAGE_BIN")
	if folder == "" || suffrage == "" {
		t.Skip("SUFFRAGE_PROMETHEUS and SUFFRAGE_BIN name no programs; `make prometheus` fetches and builds them and runs this")
	}
	return folder, suffrage
}

func TestPromtool(t *testing.T) {
	folder, _ := programs(t)
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"}, // with its rules
		{"test", "rules", "suffrage.rules.test.yml"},
	} {
		c := exec.Command(filepath.Join(folder, "promtool"), args...)
		c.Dir = deployed
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestFleet(t *testing.T) {
	folder, suffrage := programs(t)
	f := startFleet(t, suffrage)
	began := time.Now()
	s := startServer(t, folder, f.targets(t))

	// A whole window of every host, as the leading controller sees it.
	eventually(t, patience, "all that the panels ask for is measured", func() error {
		for _, expr := range []string{`count(suffrage_agent_up == 1) == 5`, `count(suffrage_fitness_figure{signal="memory"}) == 5`,
			`count by (host) (suffrage_rtt_p99_seconds{host="h1"}) == 4`, `suffrage_agent_wal_fsync_p99_seconds{host="h1"}`,
			`sum(increase(suffrage_decision_changes_total[1h])) > 0`} {
			if n, err := s.series(expr, time.Now(), time.Now()); err != nil || n == 0 {
				return fmt.Errorf("%s: %d series, %v", expr, n, err)
			}
		}
		return nil
	})

	thaw := f.freeze(t, "agent", "h5")
	fires(t, s, "SuffrageAgentDown", "h5")
	thaw()
	quiet(t, s, "SuffrageAgentDown", "h5")

	// h2 votes from the start, and is no part of the demo's swap.
	thaw = f.freeze(t, "member", "h2")
	fires(t, s, "SuffrageVoterDown", "h2")
	thaw()
	quiet(t, s, "SuffrageVoterDown", "h2")

	seen(t, s, began)
	panels(t, s, began)
}

// fires waits for an alert about a host, and compares what it says.
func fires(t *testing.T, s *server, name, host string) {
	t.Helper()
	eventually(t, patience, name+" fires for "+host, func() error {
		all, err := s.alerts()
		if err != nil {
			return err
		}
		for _, a := range all {
			if a.Labels["alertname"] != name || a.Labels["host"] != host || a.State != "firing" {
				continue
			}
			if !strings.Contains(a.Annotations["summary"], host) || !strings.HasSuffix(a.Annotations["runbook_url"], "/"+name+".md") || a.Labels["severity"] == "" {
				t.Errorf("%s fires and says %v with %v", name, a.Annotations, a.Labels)
			}
			t.Logf("%s: %s: %s", a.Labels["severity"], name, a.Annotations["summary"])
			return nil
		}
		return fmt.Errorf("among %d alerts it is not", len(all))
	})
}

// quiet waits until an alert about a host is gone.
func quiet(t *testing.T, s *server, name, host string) {
	t.Helper()
	eventually(t, patience, name+" for "+host+" goes", func() error {
		all, err := s.alerts()
		if err != nil {
			return err
		}
		for _, a := range all {
			if a.Labels["alertname"] == name && a.Labels["host"] == host {
				return fmt.Errorf("it is %s: %s", a.State, a.Annotations["summary"])
			}
		}
		return nil
	})
}

// seen tells which alerts fired, for whoever reads the log: what h3's slowness
// leads to depends on how busy the machine is.
func seen(t *testing.T, s *server, began time.Time) {
	t.Helper()
	b, err := s.get("/api/v1/query_range", map[string][]string{"query": {`count by (alertname, host) (ALERTS{alertstate="firing"})`},
		"start": {stamp(began)}, "end": {stamp(time.Now())}, "step": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Result []struct {
			Metric map[string]string
			Values []any
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Result {
		t.Logf("%s %s fired for %d s", r.Metric["alertname"], r.Metric["host"], len(r.Values))
	}
}

// variables are what Grafana fills in.
var variables = strings.NewReplacer("$__rate_interval", "10s", "$host", "h1")

// panels runs the queries of every panel over the whole run: an error, or no
// series at all, fails.
func panels(t *testing.T, s *server, began time.Time) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	now, queries := time.Now(), 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(b, &page); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range page.Panels {
			for _, q := range p.Targets {
				queries++
				n, err := s.series(variables.Replace(q.Expr), began, now)
				if err != nil || n == 0 {
					t.Errorf("%s, %q: %d series, %v: %s", filepath.Base(file), p.Title, n, err, q.Expr)
				}
			}
		}
	}
	t.Logf("%d queries of %d dashboards over %v", queries, len(files), now.Sub(began).Round(time.Second))
}
