package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"suffrage/fitness"
)

// TestAgentCost measures what one agent costs: five real agents, each a process
// of its own, at the default period, pulled every period as a controller would.
// It takes some minutes and asserts nothing but the goals, so it runs only when
// asked:
//
//	SUFFRAGE_AGENT_COST=2m go test -run TestAgentCost -v ./agent
//
// The figures of the day are in docs/performance.md.
func TestAgentCost(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SUFFRAGE_AGENT_COST"))
	if err != nil {
		t.Skip("asks for minutes: SUFFRAGE_AGENT_COST=2m runs it")
	}
	f := newTestFleet(t, "h1", "h2", "h3", "h4", "h5")
	program := filepath.Join(t.TempDir(), "suffrage")
	if out, err := exec.Command("go", "build", "-o", program, "suffrage/cmd/suffrage").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	roster, err := os.ReadFile(f.roster)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for i, n := range f.names {
		dir := t.TempDir()
		settings := fmt.Sprintf("host: %s\ndir: %s\ndata: %s\nagent:\n  metrics: 127.0.77.%d:7401\n", n, dir, filepath.Join(dir, "data"), i+1)
		for name, b := range map[string][]byte{"roster.yaml": roster, "suffrage.yaml": []byte(settings)} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.keys[n].Save(filepath.Join(dir, "host.key")); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program, "agent", "--config", filepath.Join(dir, "suffrage.yaml"))
		c.Stderr = f.log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Signal(os.Interrupt)
			if err := c.Wait(); err != nil {
				t.Errorf("agent of %s: %v\n%s", n, err, f.log.text.String())
			}
		})
		pids = append(pids, c.Process.Pid)
	}
	client := f.client("h1")
	after := map[string]uint64{}
	pull := func() {
		for _, n := range f.names {
			r, err := client.Pull(t.Context(), n, after[n])
			if err != nil {
				t.Log(err)
				continue
			}
			after[n] = r.Last
		}
	}
	period := DefaultConfig().Period.Std()
	for range 10 { // connections stand, heaps have settled
		time.Sleep(period)
		pull()
	}
	before := usage(t, pids)
	begun := time.Now()
	for time.Since(begun) < length {
		time.Sleep(period)
		pull()
	}
	took := time.Since(begun).Seconds()
	var cpu, rss float64
	for i, u := range usage(t, pids) {
		share, mib := (u.cpu-before[i].cpu)/took*100, u.rss/(1<<20)
		t.Logf("%s: %.2f %% of a core, %.1f MiB resident (%.1f MiB of it not backed by the program's file)", f.names[i], share, mib, u.anon/(1<<20))
		cpu, rss = max(cpu, share), max(rss, mib)
	}
	r, err := client.Pull(t.Context(), "h1", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the worst of %d agents, over %.0f s at a period of %v: %.2f %% of a core, %.1f MiB; h1 has %d samples of rtt to h2",
		len(pids), took, period, cpu, rss, len(series(r, fitness.RTT, "h2").Samples))
	if cpu >= 1 || rss >= 40 {
		t.Error("over the goal of 1 % of a core and 40 MiB")
	}
	if strings.Contains(f.log.text.String(), "WARN") {
		t.Logf("log:\n%s", f.log.text.String())
	}
}

type used struct{ cpu, rss, anon float64 } // seconds, bytes

func usage(t *testing.T, pids []int) []used {
	t.Helper()
	var out []used
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			t.Fatal(err)
		}
		stat, err := p.Stat()
		if err != nil {
			t.Fatal(err)
		}
		status, err := p.NewStatus()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, used{stat.CPUTime(), float64(status.VmRSS), float64(status.RssAnon)})
	}
	return out
}
