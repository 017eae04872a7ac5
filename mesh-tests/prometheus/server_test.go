package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const deployed = "../../deploy/prometheus/"

// patience is how long anything may take that has to come. Machines are busy.
const patience = 3 * time.Minute

// server is a Prometheus on a port of its own.
type server struct{ url string }

// target is one page to scrape.
type target struct{ address, host string }

// config is the part of Prometheus's configuration that a test changes; the rest
// of deploy/prometheus/prometheus.yml goes through as it is.
type config struct {
	Global        map[string]string `yaml:"global"`
	RuleFiles     []string          `yaml:"rule_files"`
	ScrapeConfigs []map[string]any  `yaml:"scrape_configs"`
}

// shorter are the times that alerts wait, and what is waited for. Nobody would wait for
// six hours: promtool's tests look at the times, this one at whether what the rules ask
// for is there and means what they say.
var shorter = map[string]string{
	`(?m)^( +for:) .*$`:                                "$1 1s",
	`(suffrage_refusal_age_seconds\)) > 6 \* 3600`:     "$1 > 1",
	`(suffrage_plan_age_seconds\)) > 900`:              "$1 > 1",
	`(suffrage_operation_age_seconds\)) > 1800`:        "$1 > 1",
	`(suffrage_decision_changes_total\[1h\]\)\)) > 30`: "$1 > 2",
	`(suffrage_last_round_timestamp_seconds) > 300`:    "$1 > 5", // a round with an agent that does not answer takes two
}

// startServer gives the deployed configuration other targets and shorter times,
// and runs it.
func startServer(t *testing.T, programs string, targets map[string][]target) *server {
	t.Helper()
	dir := t.TempDir()
	var c config
	b, err := os.ReadFile(deployed + "prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	c.Global = map[string]string{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	for _, job := range c.ScrapeConfigs {
		name := job["job_name"].(string)
		var static []any
		for _, x := range targets[name] {
			entry := map[string]any{"targets": []string{x.address}}
			if x.host != "" {
				entry["labels"] = map[string]string{"host": x.host}
			}
			static = append(static, entry)
		}
		if static == nil {
			t.Fatalf("the fleet has no targets for the job %s", name)
		}
		job["static_configs"] = static
	}
	rules, err := os.ReadFile(deployed + "suffrage.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	for long, short := range shorter {
		re := regexp.MustCompile(long)
		if !re.Match(rules) {
			t.Fatalf("no rule has %s", long)
		}
		rules = re.ReplaceAll(rules, []byte(short))
	}
	write(t, filepath.Join(dir, "suffrage.rules.yml"), rules)
	out, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "prometheus.yml"), out)

	address := freeAddress(t)
	run(t, filepath.Join(dir, "log"), filepath.Join(programs, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	s := &server{"http://" + address}
	eventually(t, patience, "Prometheus is ready", func() error {
		_, err := s.get("/-/ready", nil)
		return err
	})
	return s
}

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// freeAddress is free now; nothing else here asks for one meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// run starts a program, and ends it with the test as Ctrl-C does. Its output is in
// a file, of which a failed test prints the end. It gives its process ID.
func run(t *testing.T, log, program string, args ...string) int {
	t.Helper()
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = f, f
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		select {
		case <-done:
		case <-time.After(patience):
			t.Errorf("%s does not end", program)
			_ = c.Process.Kill()
			<-done
		}
		f.Close()
		if b, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("%s:\n%s", filepath.Base(program), b[max(0, len(b)-6000):])
		}
	})
	return c.Process.Pid
}

// get asks the server; an answer that is no success is an error with its text.
func (s *server) get(path string, q url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer json.RawMessage
	if path == "/-/ready" {
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s", resp.Status)
		}
		return nil, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %w", resp.Status, err)
	}
	var a struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, err
	}
	if a.Status != "success" {
		return nil, fmt.Errorf("%s", a.Error)
	}
	return a.Data, nil
}

// series counts what an expression gives between two times.
func (s *server) series(expr string, from, to time.Time) (int, error) {
	b, err := s.get("/api/v1/query_range", url.Values{"query": {expr}, "start": {stamp(from)}, "end": {stamp(to)}, "step": {"2"}})
	if err != nil {
		return 0, err
	}
	var d struct{ Result []any }
	err = json.Unmarshal(b, &d)
	return len(d.Result), err
}

func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// alert is one that Prometheus has now, pending or firing.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// saysWhose reports whether the summary has what the labels tell the alert's subject from
// others by: an instance only where that is not some host's.
func (a alert) saysWhose() bool {
	for name, value := range a.Labels {
		switch {
		case name == "alertname" || name == "severity" || name == "job":
		case name == "instance" && a.Labels["host"] != "":
		case !strings.Contains(a.Annotations["summary"], value):
			return false
		}
	}
	return true
}

func (s *server) alerts() ([]alert, error) {
	b, err := s.get("/api/v1/alerts", nil)
	if err != nil {
		return nil, err
	}
	var d struct{ Alerts []alert }
	err = json.Unmarshal(b, &d)
	return d.Alerts, err
}

// eventually waits until f gives no error.
func eventually(t *testing.T, most time.Duration, what string, f func() error) {
	t.Helper()
	end := time.Now().Add(most)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %v", what, most, err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}
