package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// programs gives the folder of prometheus and promtool, suffrage, and suffrage with a clock
// that can be set.
func programs(t *testing.T) (folder, suffrage, clock string) {
	t.Helper()
	folder, suffrage, clock = os.Getenv("SUFFRAGE_PROMETHEUS"), os.Getenv("SUFFRAGE_BIN"), os.Getenv("SUFFRAGE_CLOCK_BIN")
	if folder == "" || suffrage == "" || clock == "" {
		t.Skip("SUFFRAGE_PROMETHEUS, SUFFRAGE_BIN and SUFFRAGE_CLOCK_BIN name no programs; `make prometheus` fetches and builds them and runs this")
	}
	return folder, suffrage, clock
}

func TestPromtool(t *testing.T) {
	folder, _, _ := programs(t)
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
	folder, suffrage, clock := programs(t)
	f := startFleet(t, suffrage)
	began := time.Now()
	s := startServer(t, folder, f.targets(t))
	// Snapshots are saved at a minute: the first one is waited for while there is other work.
	holds(t, s, "all agents answer", `count(suffrage_agent_up == 1) == 5`)
	restore := f.spoilSnapshots(t)
	// A whole window of every host, as the leading controller sees it.
	holds(t, s, "all that the panels ask for is measured", `count(suffrage_agent_up == 1) == 5`, `count(suffrage_fitness_figure{signal="memory"}) == 5`,
		`count by (host) (suffrage_rtt_p99_seconds{host="h1"}) == 4`, `suffrage_agent_wal_fsync_p99_seconds{host="h1"}`,
		`sum(increase(suffrage_decision_changes_total[1h])) > 0`)

	hostFaults(t, f, s, clock)
	fires(t, s, "SuffrageSnapshotFailed", "host", "h1")
	restore() // a swap saves one too
	controllerFaults(t, f, s)
	seen(t, s, began)
	panels(t, s, began)
}

// hostFaults are those of voters and agents, one after the other: each alert has to fire,
// and say what it should. Those of agents come last, so that the voters are long well again
// when a swap is to begin.
func hostFaults(t *testing.T, f *fleet, s *server, clock string) {
	t.Helper()
	fires(t, s, "SuffrageVoterUnfit", "host", "h3")
	fires(t, s, "SuffragePlanWaits", "out", "h3")

	// h2 votes from the start, and is no part of the demo's swap.
	f.freeze(t, "member", "h2")
	fires(t, s, "SuffrageVoterDown", "host", "h2")
	fires(t, s, "SuffrageNoTolerance", "severity", "critical")
	fires(t, s, "SuffrageProbeFails", "host", "h2")
	fires(t, s, "SuffrageRefusalWaits", "subject", "h2")
	// It is killed, comes back with another election timeout than the others have, and then with
	// theirs.
	restore := f.change(t, "h2", "member", map[string]any{"election_timeout": "1100ms"})
	f.kill(t, "member", "h2")
	fires(t, s, "SuffrageTimeoutsDiffer", "severity", "warning")
	restore()
	f.kill(t, "member", "h2")
	holds(t, s, "h2 votes with the timeout of the others", `count(suffrage_member_election_timeout_seconds == 1) == 3`, `count(suffrage_voter_up == 1) == 3`)
	quiet(t, s, "SuffrageTimeoutsDiffer", "")
	quiet(t, s, "SuffrageVoterDown", "h2")

	// An agent that takes a sample twice a second has no full window for fifty seconds, and
	// remembers for twelve that it was late.
	restore = f.change(t, "h5", "agent", map[string]any{"period": "500ms"})
	f.runAgent(t, "h5", f.program)
	fires(t, s, "SuffrageHostUnknown", "host", "h5")
	restore()
	thaw := f.freeze(t, "agent", "h5")
	fires(t, s, "SuffrageAgentDown", "host", "h5")
	thaw()
	fires(t, s, "SuffrageAgentLate", "host", "h5")
	quiet(t, s, "SuffrageAgentDown", "h5")
	f.runAgent(t, "h5", "env", "SUFFRAGE_LAB_CLOCK=3600", clock)
	fires(t, s, "SuffrageClockOff", "host", "h5")
	f.runAgent(t, "h5", f.program)
	for _, h := range hosts {
		quiet(t, s, "SuffrageClockOff", h)
	}
}

// controllerFaults are those of decisions, and of what is done about them.
func controllerFaults(t *testing.T, f *fleet, s *server) {
	t.Helper()
	// A pin changes the decision, and there is no place to write down why. With a member
	// away another controller may lead, which has a place of its own.
	restore := f.fillDecisions(t)
	f.command(t, "host", "pin", "h3", "--reason", "to see a record lost")
	fires(t, s, "SuffrageRecordsLost", "severity", "warning")
	restore()

	// So does the end of the pin, and the place to write down why does not answer.
	release := f.hangDecisions(t)
	f.command(t, "host", "unpin", "h3")
	fires(t, s, "SuffrageControllerHangs", "severity", "warning")
	release()
	quiet(t, s, "SuffrageControllerHangs", "")

	// A swap that cannot go on, since the agent of the voter that is to go is away; and
	// that the owner then ends.
	f.command(t, "mode", "active", "--yes")
	var ops []struct {
		ID, Out string
		Open    bool
	}
	eventually(t, patience, "the swap begins", func() error {
		said := f.command(t, "operations", "list", "-o", "json")
		if err := json.Unmarshal([]byte(said), &ops); err != nil || len(ops) == 0 || !ops[0].Open || ops[0].Out != "h3" {
			return fmt.Errorf("%v: %s", err, said)
		}
		return nil
	})
	thaw := f.freeze(t, "agent", "h3")
	fires(t, s, "SuffrageOperationStuck", "out", "h3")
	if _, err := f.once(t, "operations", "stop", ops[0].ID, "--yes", "--reason", "it waits for h3"); err != nil {
		t.Log("it has turned back by itself:", err)
	}
	fires(t, s, "SuffrageOperationFailed", "out", "h3")
	thaw()
	fires(t, s, "SuffrageDecisionSwings", "severity", "warning")

	var thaws []func()
	for _, h := range []string{"h1", "h2"} {
		thaws = append(thaws, f.freeze(t, "controller", h))
	}
	fires(t, s, "SuffrageNoLeader", "severity", "warning")
	for _, h := range []string{"h1", "h2"} { // two voters of three
		thaws = append(thaws, f.freeze(t, "member", h))
	}
	fires(t, s, "SuffrageNoQuorum", "severity", "critical")
	for _, thaw := range thaws {
		thaw()
	}
}

// holds waits until each expression has a result.
func holds(t *testing.T, s *server, what string, exprs ...string) {
	t.Helper()
	eventually(t, patience, what, func() error {
		for _, expr := range exprs {
			if n, err := s.series(expr, time.Now(), time.Now()); err != nil || n == 0 {
				return fmt.Errorf("%s: %d series, %v", expr, n, err)
			}
		}
		return nil
	})
}

// fires waits for an alert with that label, and looks at what it says. Some last for
// seconds only, so that one that has come and gone will do.
func fires(t *testing.T, s *server, name, label, value string) {
	t.Helper()
	began := time.Now()
	eventually(t, patience, fmt.Sprintf("%s fires with the %s %s", name, label, value), func() error {
		all, err := s.alerts()
		if err != nil {
			return err
		}
		var others []string
		for _, a := range all {
			if a.Labels["alertname"] != name || a.Labels[label] != value || a.State != "firing" {
				others = append(others, a.Labels["alertname"]+" "+a.State)
				continue
			}
			if !a.saysWhose() || !strings.HasSuffix(a.Annotations["runbook_url"], "/"+name+".md") || a.Labels["severity"] == "" {
				t.Errorf("%s fires and says %v with %v", name, a.Annotations, a.Labels)
			}
			t.Logf("%s: %s: %s", a.Labels["severity"], name, a.Annotations["summary"])
			return nil
		}
		if n, err := s.series(fmt.Sprintf(`ALERTS{alertname=%q,%s=%q,alertstate="firing"}`, name, label, value), began, time.Now()); err == nil && n > 0 {
			t.Logf("%s with the %s %s came and went", name, label, value)
			return nil
		}
		return fmt.Errorf("there are %s", strings.Join(others, ", "))
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

// seen wants every alert of the rules to have fired, and docs/observability.md to say of it.
func seen(t *testing.T, s *server, began time.Time) {
	t.Helper()
	// A second more: what has only just fired lies behind the last whole step.
	b, err := s.get("/api/v1/query_range", map[string][]string{"query": {`count by (alertname, host) (ALERTS{alertstate="firing"})`},
		"start": {stamp(began)}, "end": {stamp(time.Now().Add(time.Second))}, "step": {"1"}})
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
	fired := map[string]bool{}
	for _, r := range d.Result {
		fired[r.Metric["alertname"]] = true
		t.Logf("%s %s fired for %d s", r.Metric["alertname"], r.Metric["host"], len(r.Values))
	}
	rules, err := os.ReadFile(deployed + "suffrage.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !fired[m[1]] {
			t.Errorf("%s has not fired", m[1])
		}
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/observability.md does not say what makes %s fire", m[1])
		}
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
