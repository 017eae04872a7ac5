package main

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/kubetest"
)

// everyVoter makes TestKubernetesEndpoint swap all three voters, one after the
// other; one of them takes a minute, of which most is the cooldown.
const everyVoter = "SUFFRAGE_EVERY_VOTER"

// TestKubernetesEndpoint puts a Kubernetes API server behind a host's datastore
// endpoint, with the certificate that is issued for it, and swaps voters, of which
// the first is the endpoint's own: no ConfigMap is lost and no write fails, though
// each is tried once.
func TestKubernetesEndpoint(t *testing.T) {
	if os.Getenv(kubetest.Variable) == "" {
		t.Skip("SKIPPED: make kube-test runs it")
	}
	f := &ownersFleet{t: t, program: plainBinary(t), dir: filepath.Join(t.TempDir(), "fleet")}
	f.start("--slow", "h3=0s", "--mode", "active", "--until", "stopped", "--stall-time", "15s")
	at := f.endpoints()
	near := netip.MustParseAddrPort(at)
	dir := filepath.Join(f.dir, "h3")
	server := kubetest.Over(t, near.Addr(), kubetest.Below{Endpoints: []string{"https://" + at},
		CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, datastoreCert), Key: filepath.Join(dir, datastoreKey)})

	maps := server.ConfigMaps("endpoint")
	ctx, stop := context.WithCancel(context.Background())
	type ended struct {
		history.History
		history.Writes
	}
	done := make(chan ended, 1)
	go func() {
		h, seen := maps.Run(ctx)
		done <- ended{h, seen}
	}()
	t.Cleanup(stop)
	swaps := 1
	if os.Getenv(everyVoter) != "" {
		swaps = 3
	}
	gone := f.swapEach(swaps)
	stop()
	got := <-done
	history.Judge(t, got.History, got.Writes, "")
	for _, e := range maps.Errors() {
		t.Error(e)
	}
	for _, cached := range []bool{false, true} {
		f.wait("every ConfigMap that was made is listed", func() bool {
			missing, err := maps.Missing(t.Context(), cached)
			if err != nil {
				t.Fatal(err)
			}
			return len(missing) == 0
		})
	}
	t.Logf("swapped out %v: longest gap without a write %v, slowest %v", gone, got.Gap, got.Slowest)
}

// endpoints gives every host a certificate and an endpoint, as an owner would, and
// the address of h3's.
func (f *ownersFleet) endpoints() (at string) {
	f.t.Helper()
	for _, h := range []string{"h1", "h2", "h3", "h4", "h5"} {
		if said, code := f.run(h, "identity", "datastore", "--dir", filepath.Join(f.dir, h)); code != exitOK || !strings.Contains(said, "--datastore-keyfile=") {
			f.t.Fatalf("exit %d: %s", code, said)
		}
		file := filepath.Join(f.dir, h, "suffrage.yaml")
		text := contentOf(f.t, file)
		// The address is in the host's certificate, as 127.0.0.1 is, which is for one
		// host of this machine only.
		mesh, _, _ := strings.Cut(strings.TrimPrefix(f.settings(h).Member.ListenClient, "https://"), ":")
		at = mesh + ":2378"
		before, after, ok := strings.Cut(text, "endpoint:\n    listen: \"\"\n")
		if !ok {
			f.t.Fatalf("%s has other settings:\n%s", file, text)
		}
		if err := os.WriteFile(file, []byte(before+"endpoint:\n    listen: "+at+"\n"+after), 0o600); err != nil {
			f.t.Fatal(err)
		}
		if h == "h3" {
			defer func(a string) { at = a }(at)
		}
		f.restartAgent(h)
	}
	f.wait("every endpoint leads", func() bool {
		for i := range 5 {
			if e := f.leadsTo(string(rune('1' + i))); e == nil || e.Reads == "" || e.Error != "" {
				return false
			}
		}
		return true
	})
	return at
}

// restartAgent ends the demo's agent, which nobody starts again, and starts one.
func (f *ownersFleet) restartAgent(host string) {
	f.t.Helper()
	f.kill("agent", host, syscall.SIGTERM)
	f.wait("the agent of "+host+" ends", func() bool { return !f.runs("agent", host) })
	log, err := os.OpenFile(filepath.Join(f.dir, host, "agent.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	agent := exec.Command(f.program, "agent", "--config", filepath.Join(f.dir, host, "suffrage.yaml"))
	agent.Stderr = log
	agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := agent.Start(); err != nil {
		f.t.Fatal(err)
	}
	// As the demo's own, where that is allowed: a late sample weighs nothing.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, agent.Process.Pid, -10)
	f.t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		if f.t.Failed() {
			f.t.Logf("log of the agent of %s:\n%s", host, contentOf(f.t, log.Name()))
		}
	})
}

// leadsTo is where the endpoint of a host leads, nil while nobody knows.
func (f *ownersFleet) leadsTo(number string) *fitness.EndpointFacts {
	f.t.Helper()
	for _, h := range run1[Status](f, "h1", "status").Hosts {
		if h.Host == "h"+number {
			return h.Endpoint
		}
	}
	return nil
}

// swapEach swaps so many of the voters from the start, each for a standby, and
// gives those that were.
func (f *ownersFleet) swapEach(n int) (gone []string) {
	f.t.Helper()
	for _, out := range []string{"h3", "h2", "h1"}[:n] {
		in := f.standby(append(f.voters(), gone...))
		for until := time.Now().Add(4 * time.Minute); ; {
			r := f.swapped(out, in, nil, nil)
			f.t.Logf("%s → %s: %s in %v", out, in, r.Outcome, r.Ended.Sub(r.Begun).Round(time.Second))
			for _, s := range r.Steps {
				f.t.Logf("  %s %v %s", s.Name, s.Ended.Sub(s.Begun).Round(time.Millisecond), s.Note)
			}
			if r.Outcome == membership.Completed {
				gone = append(gone, out)
				break
			}
			// On a machine that is busy elsewhere the newcomer is slow, too.
			if time.Now().After(until) {
				f.t.Skipf("SKIPPED: the machine is too busy for a swap: %s", r.TurnedBack)
			}
		}
	}
	if slices.ContainsFunc(f.voters(), func(v string) bool { return slices.Contains(gone, v) }) {
		f.t.Errorf("%v still vote: %v", gone, f.voters())
	}
	return gone
}
