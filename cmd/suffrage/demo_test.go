package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/membership"
)

// plainBinary builds the program once, without the race detector: the demo is
// ten of its processes.
var plainBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "suffrage-binary-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "suffrage")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return path, err
})

// demoRun runs the real demo to its end and gives what it printed.
func demoRun(t *testing.T, args ...string) (stdout []byte, dir string) {
	t.Helper()
	program, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "fleet")
	args = append([]string{"demo", "--dir", dir, "--for", "3m"}, args...)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("suffrage %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	t.Logf("%s", said.String())
	return out.Bytes(), dir
}

func TestDemoPlansToMoveTheSlowVoter(t *testing.T) {
	if testing.Short() {
		t.Skip("starts ten processes and takes most of a minute")
	}
	out, dir := demoRun(t, "--slow", "h3=150ms", "--until", "decision", "-o", "json")
	var d membership.Decision
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("%v in: %s", err, out)
	}
	if d.Kind != membership.Planned || d.Plan == nil || d.Plan.Out != "h3" {
		t.Fatalf("want a plan that moves the vote of h3 away:\n%s", out)
	}
	// Between two standbys that are equal but for noise, noise may choose.
	if d.Plan.In != "h4" && d.Plan.In != "h5" {
		t.Errorf("the vote would go to %s, which is no standby", d.Plan.In)
	}
	if !strings.Contains(d.Plan.Why, "h3") || len(d.Plan.Steps) == 0 {
		t.Errorf("the plan does not explain itself:\n%s", out)
	}
	if d.Since.IsZero() || d.At.Sub(d.Since) < 0 || time.Since(d.At) > time.Minute {
		t.Errorf("taken at %v, so since %v", d.At, d.Since)
	}
	leftNothing(t, dir)
}

// leftNothing looks for processes that have the demo's directory in their
// command line.
func leftNothing(t *testing.T, dir string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		b, err := os.ReadFile(l)
		if err == nil && bytes.Contains(b, []byte(dir)) {
			t.Errorf("a process is left: %s", bytes.ReplaceAll(b, []byte{0}, []byte(" ")))
		}
	}
}

func TestDemoDefaults(t *testing.T) {
	for _, tc := range []struct {
		o        demo.Options
		terminal bool
		until    demo.Until
		slow     bool
		why      string
	}{
		{demo.Options{}, true, demo.UntilStopped, true, "a person watches"},
		{demo.Options{}, false, demo.UntilDecision, true, "nobody could press Ctrl-C"},
		{demo.Options{Until: demo.UntilSteady}, false, demo.UntilSteady, false, "a slow host would never be steady"},
		{demo.Options{SlowDisk: map[string]time.Duration{"h2": 1}}, true, demo.UntilStopped, false, "somebody chose what is slow"},
	} {
		tc.o.Period = 50 * time.Millisecond
		demoDefaults(&tc.o, tc.terminal)
		if tc.o.Until != tc.until || (len(tc.o.Slow) > 0) != tc.slow {
			t.Errorf("until %q, slow %v: %s", tc.o.Until, tc.o.Slow, tc.why)
		}
		if (tc.o.For > 0) != (tc.until != demo.UntilStopped) {
			t.Errorf("for %v with until %q: only a run that ends by itself has a limit", tc.o.For, tc.o.Until)
		}
	}
}

// Every host's settings are written with yaml and read strictly: what the demo
// writes must be what the commands take.
func TestDemoSettingsAreValid(t *testing.T) {
	for _, period := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 3 * time.Second} {
		f, err := demo.NewFleet(filepath.Join(t.TempDir(), "fleet"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Write(func(f *demo.Fleet, h demo.Host) (any, error) { return demoSettings(f, h, period) }); err != nil {
			t.Fatal(err)
		}
		for _, h := range f.Hosts {
			root := newRoot()
			root.SetArgs([]string{"config", "check", "--config", h.Path(demo.ConfigFile)})
			var out bytes.Buffer
			root.SetOut(&out)
			if err := root.Execute(); err != nil {
				t.Errorf("period %v, %s: %v\n%s", period, h.Name, err, out.String())
			}
			s, err := demoSettings(f, h, period)
			if err != nil {
				t.Error(err)
			}
			if s.Agent.Period != fitness.Duration(period) {
				t.Errorf("%s: the agent samples every %v, want %v", h.Name, s.Agent.Period, period)
			}
		}
	}
}
