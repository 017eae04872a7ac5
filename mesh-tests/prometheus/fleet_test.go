package prometheus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

// fleet is a running demo.
type fleet struct {
	dir string
	pid int
}

var hosts = []string{"h1", "h2", "h3", "h4", "h5"}

// startFleet runs the demo: h3 gets slow once all are fit, and is swapped where
// the machine has the time for it.
func startFleet(t *testing.T, program string) *fleet {
	t.Helper()
	dir := t.TempDir()
	f := &fleet{dir: filepath.Join(dir, "fleet")}
	f.pid = run(t, filepath.Join(dir, "log"), program, "demo", "--until", "stopped", "--mode", "active", "--slow", "h3=150ms", "--dir", f.dir)
	return f
}

// targets are the pages of the fleet, by scrape job.
func (f *fleet) targets(t *testing.T) map[string][]target {
	t.Helper()
	out := map[string][]target{}
	for _, h := range hosts {
		var s struct {
			Agent, Controller, Member struct {
				Metrics string `yaml:"metrics"`
			}
		}
		eventually(t, patience, "the settings of "+h+" are written", func() error {
			b, err := os.ReadFile(filepath.Join(f.dir, h, "suffrage.yaml"))
			if err != nil {
				return err
			}
			if err := yaml.Unmarshal(b, &s); err != nil {
				return err
			}
			if s.Agent.Metrics == "" || s.Controller.Metrics == "" || s.Member.Metrics == "" {
				return errors.New("incomplete")
			}
			return nil
		})
		out["suffrage-agent"] = append(out["suffrage-agent"], target{s.Agent.Metrics, h})
		out["suffrage-member"] = append(out["suffrage-member"], target{strings.TrimPrefix(s.Member.Metrics, "http://"), h})
		if h == "h1" || h == "h2" { // where the demo runs controllers
			out["suffrage-controller"] = append(out["suffrage-controller"], target{s.Controller.Metrics, ""})
		}
	}
	return out
}

// freeze stops one process of a host until thaw is called, or the test ends.
func (f *fleet) freeze(t *testing.T, verb, host string) (thaw func()) {
	t.Helper()
	pid, err := f.find(verb, host)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(thaw)
	return thaw
}

// find gives the process that the demo runs for a host.
func (f *fleet) find(verb, host string) (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	want := strings.Join([]string{"", verb, "--config", filepath.Join(f.dir, host, "suffrage.yaml"), ""}, "\x00")
	for _, line := range lines {
		if b, err := os.ReadFile(line); err == nil && strings.HasSuffix(string(b), want) {
			return strconv.Atoi(filepath.Base(filepath.Dir(line)))
		}
	}
	return 0, fmt.Errorf("no %s runs on %s", verb, host)
}
