package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/kubetest"
)

// everyVoter makes TestKubernetesEndpoint swap all three voters, one after the
// other; one of them takes a minute, of which most is the cooldown.
const everyVoter = "SUFFRAGE_EVERY_VOTER"

const clock = "15:04:05.000"

// TestKubernetesEndpoint puts a Kubernetes API server behind a host's datastore
// endpoint, with the certificate that is issued for it, and swaps voters, the
// first of which leads and is the endpoint's own: no ConfigMap is lost and no write fails, though
// each is tried once.
func TestKubernetesEndpoint(t *testing.T) {
	if os.Getenv(kubetest.Variable) == "" {
		t.Skip("SKIPPED: make kube-test runs it")
	}
	t.Parallel() // both wait most of their time
	f := &ownersFleet{t: t, program: plainBinary(t), dir: filepath.Join(t.TempDir(), "fleet")}
	f.start("--slow", "h3=0s", "--mode", "active", "--until", "stopped", "--stall-time", "15s")
	addresses := f.endpoints()
	leader := f.until("somebody leads", "h1", func(s Status) bool { return s.Leader != "" }).Leader
	voters := f.voters()
	voters = append([]string{leader}, slices.DeleteFunc(voters, func(v string) bool { return v == leader })...)
	at, dir := addresses[leader], filepath.Join(f.dir, leader)
	near := netip.MustParseAddrPort(at)
	server := kubetest.Over(t, near.Addr(), kubetest.Below{Endpoints: []string{"https://" + at},
		CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, datastoreCert), Key: filepath.Join(dir, datastoreKey)})

	maps := server.ConfigMaps("endpoint")
	ctx, stop := context.WithCancel(context.Background())
	type result struct {
		history.History
		history.Writes
	}
	ended := make(chan result, 1)
	go func() {
		h, seen := maps.Run(ctx)
		ended <- result{h, seen}
	}()
	t.Cleanup(stop)
	swaps := 1
	if os.Getenv(everyVoter) != "" {
		swaps = 3
	}
	term := f.term()
	leaders := f.leaders(ctx)
	done := f.swapEach(voters[:swaps])
	stop()
	got := <-ended
	moves := uint64(0)
	for _, r := range done {
		t.Logf("%s → %s in %v, longest gap without a write %v", r.Out, r.In, r.Ended.Sub(r.Begun).Round(time.Millisecond), maps.Gap(r.Begun, r.Ended).Round(time.Millisecond))
		for _, s := range r.Steps {
			if s.Name == "step-down" {
				moves++
			}
			t.Logf("  %s %s %v %s", s.Begun.UTC().Format(clock), s.Name, s.Ended.Sub(s.Begun).Round(time.Millisecond), s.Note)
		}
	}
	// An election that takes the place of a step down is no busy machine.
	seen := <-leaders
	for _, r := range done {
		if unmoved(r, seen) {
			t.Errorf("%s led all through its swap, and its leadership was not moved before it was asked to go", r.Out)
		}
	}
	if elections := f.term() - term - moves; elections > 0 && got.Failed > 0 {
		t.Skipf("SKIPPED: the machine is too busy: %d elections that nobody asked for, %d failed writes", elections, got.Failed)
	}
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
	if len(done) < swaps {
		t.Skipf("SKIPPED: the machine is too busy for more swaps than %d of %d", len(done), swaps)
	}
}

// endpoints gives every host a certificate and an endpoint, as an owner would, and
// their addresses by host.
func (f *ownersFleet) endpoints() map[string]string {
	f.t.Helper()
	addresses := map[string]string{}
	for _, h := range []string{"h1", "h2", "h3", "h4", "h5"} {
		if said, code := f.run(h, "identity", "datastore", "--dir", filepath.Join(f.dir, h)); code != exitOK || !strings.Contains(said, "--datastore-keyfile=") {
			f.t.Fatalf("exit %d: %s", code, said)
		}
		file := filepath.Join(f.dir, h, "suffrage.yaml")
		text := contentOf(f.t, file)
		// The address is in the host's certificate, as 127.0.0.1 is, which is for one
		// host of this machine only.
		mesh, _, _ := strings.Cut(strings.TrimPrefix(f.settings(h).Member.ListenClient, "https://"), ":")
		at := mesh + ":2378"
		addresses[h] = at
		before, after, ok := strings.Cut(text, "endpoint:\n    listen: \"\"\n")
		if !ok {
			f.t.Fatalf("%s has other settings:\n%s", file, text)
		}
		if err := os.WriteFile(file, []byte(before+"endpoint:\n    listen: "+at+"\n"+after), 0o600); err != nil {
			f.t.Fatal(err)
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
	return addresses
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
	if err := ahead(agent.Start); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		if f.t.Failed() {
			f.t.Logf("log of the agent of %s:\n%s", host, contentOf(f.t, log.Name()))
		}
	})
}

// ahead starts a process with the priority of the demo's own, where that is
// allowed: a late sample weighs nothing. A priority is a thread's, and inherited.
func ahead(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	if err == nil && unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -10) == nil {
		defer unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 20-was) // it tells 20 less nice
	}
	return start()
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

// term is etcd's, of which every election and every move of the leadership makes one.
func (f *ownersFleet) term() (term uint64) {
	f.t.Helper()
	client := f.client()
	f.wait("a member tells its term", func() bool {
		for _, e := range client.Endpoints() {
			ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
			s, err := client.Status(ctx, e)
			cancel()
			if err == nil {
				term = max(term, s.RaftTerm)
			}
		}
		return term > 0
	})
	return term
}

// swapEach swaps voters, each for a standby, and gives the records. On a machine that
// is busy elsewhere no standby is fit, or the newcomer is slow too; then it is asked
// for again, up to two minutes.
func (f *ownersFleet) swapEach(voters []string) (done []membership.Operation) {
	f.t.Helper()
	for _, out := range voters {
		last := ""
		for until, try := time.Now().Add(2*time.Minute), 0; ; try++ {
			in := f.standbys(done)[try%2]
			said, code := f.run("h1", "swap", out, in, "--yes", "-o", "json", "--by", "anna")
			var r membership.Operation
			if code == exitOK {
				if err := json.Unmarshal([]byte(said), &r); err != nil {
					f.t.Fatalf("%v in %s", err, said)
				}
			}
			if r.Outcome == membership.Completed {
				done = append(done, r)
				break
			}
			if reasons := fmt.Sprint(refusal.FindAllString(said, -1)); reasons != last {
				last = reasons
				f.t.Logf("%s → %s: exit %d, %s", out, in, code, reasons)
			}
			if time.Now().After(until) {
				f.t.Log(said)
				return done
			}
			f.run("h1", "clear-quarantine", in)
			time.Sleep(500 * time.Millisecond)
		}
	}
	return done
}

// standbys are the hosts without a vote, those that never had one first.
func (f *ownersFleet) standbys(done []membership.Operation) (out []string) {
	f.t.Helper()
	voters := f.voters()
	had := func(h string) bool {
		return slices.ContainsFunc(done, func(r membership.Operation) bool { return r.Out == h })
	}
	for _, again := range []bool{false, true} {
		for _, h := range []string{"h1", "h2", "h3", "h4", "h5"} {
			if !slices.Contains(voters, h) && had(h) == again {
				out = append(out, h)
			}
		}
	}
	return out
}
