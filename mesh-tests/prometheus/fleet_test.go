package prometheus

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"suffrage/membership/control"
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

// hangDecisions has the controllers wait where they keep their decisions, as on a disk
// that hangs, until release is called: the kernel lets nobody else open a file before
// whoever has the lease of it (fcntl(2), F_SETLEASE) gives it back, which may take
// /proc/sys/fs/lease-break-time, 45 s. Go does nothing on the SIGIO that asks for it.
func (f *fleet) hangDecisions(t *testing.T) (release func()) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(f.dir, "h[12]", "data", "decisions", "*"+control.TimelineSuffix))
	if err != nil || len(files) == 0 {
		t.Fatalf("no controller keeps a timeline: %v", err)
	}
	var held []*os.File
	release = func() {
		for _, file := range held {
			_ = file.Close() // which ends the lease
		}
	}
	t.Cleanup(release)
	for _, name := range files {
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, file)
		eventually(t, patience, "nobody has "+name+" open", func() error {
			_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
			return err
		})
	}
	return release
}

// spoilSnapshots has h1 save a snapshot at each of the next two minutes, lest the first be
// there before its agent is, with a file where the directory of them would be, until restore
// is called.
func (f *fleet) spoilSnapshots(t *testing.T) (restore func()) {
	t.Helper()
	dir := filepath.Join(f.dir, "h1", "data", "snapshots")
	write(t, dir, nil)
	var at []string
	for m := range 2 {
		at = append(at, time.Now().UTC().Add(time.Duration(m+1)*time.Minute).Format("15:04"))
	}
	f.change(t, "h1", "snapshots", map[string]any{"at": at, "jitter": "0s"})
	f.runAgent(t, "h1", f.program)
	return func() {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// change sets keys of one section of a host's settings until restore is called: for what
// is started meanwhile.
func (f *fleet) change(t *testing.T, host, section string, keys map[string]any) (restore func()) {
	t.Helper()
	before, err := os.ReadFile(f.settings(host))
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := yaml.Unmarshal(before, &s); err != nil {
		t.Fatal(err)
	}
	maps.Copy(s[section].(map[string]any), keys)
	after, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.settings(host), after)
	return func() { write(t, f.settings(host), before) }
}

// runAgent kills a host's agent and runs another in its place, by this command. The demo
// leaves one that ended to whoever watches.
func (f *fleet) runAgent(t *testing.T, host string, command ...string) {
	t.Helper()
	f.kill(t, "agent", host)
	eventually(t, patience, "the agent of "+host+" has ended", func() error {
		if pid, err := f.find("agent", host); err == nil {
			return fmt.Errorf("process %d is there", pid)
		}
		return nil
	})
	run(t, filepath.Join(t.TempDir(), "log"), command[0], append(command[1:], "agent", "--config", f.settings(host))...)
}

// kill ends a process without a word. The demo starts a member again, as the settings are
// then.
func (f *fleet) kill(t *testing.T, verb, host string) {
	t.Helper()
	pid, err := f.find(verb, host)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
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

// find gives the process that runs for a host.
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
