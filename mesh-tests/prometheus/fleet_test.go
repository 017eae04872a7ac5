package prometheus

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

// fleet is a running demo.
type fleet struct {
	dir     string
	program string
}

var hosts = []string{"h1", "h2", "h3", "h4", "h5"}

// startFleet runs the demo: h3 gets slow once all are fit, and nothing is done about it
// until the owner says so.
func startFleet(t *testing.T, program string) *fleet {
	t.Helper()
	dir := t.TempDir()
	f := &fleet{dir: filepath.Join(dir, "fleet"), program: program}
	run(t, filepath.Join(dir, "log"), program, "demo", "--until", "stopped", "--mode", "dry-run", "--slow", "h3=150ms", "--dir", f.dir)
	return f
}

// settings is the file of a host.
func (f *fleet) settings(host string) string { return filepath.Join(f.dir, host, "suffrage.yaml") }

// command gives one as an owner on h1 does, again where etcd is just electing.
func (f *fleet) command(t *testing.T, args ...string) (said string) {
	t.Helper()
	eventually(t, patience, "suffrage "+strings.Join(args, " "), func() error {
		out, err := f.once(t, args...)
		said = string(out)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return said
}

// once gives a command without asking again.
func (f *fleet) once(t *testing.T, args ...string) ([]byte, error) {
	return exec.CommandContext(t.Context(), f.program, append(args, "--config", f.settings("h1"))...).Output()
}

// fillDecisions puts a file where the controllers keep their decisions, until restore is
// called.
func (f *fleet) fillDecisions(t *testing.T) (restore func()) {
	t.Helper()
	var dirs []string
	for _, h := range []string{"h1", "h2"} {
		dir := filepath.Join(f.dir, h, "data", "decisions")
		if _, err := os.Stat(dir); err != nil {
			continue // it has not led
		}
		dirs = append(dirs, dir)
		if err := errors.Join(os.Rename(dir, dir+".aside"), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, dir := range dirs {
			if err := errors.Join(os.Remove(dir), os.Rename(dir+".aside", dir)); err != nil {
				t.Fatal(err)
			}
		}
	}
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
