package k3s_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/k3s"
)

// meminfo is what the agents of this test read in place of the machine's own.
type meminfo string

// available writes it in place and in one length, since it is mounted and read.
func (m meminfo) available(t *testing.T, mib int) {
	t.Helper()
	f, err := os.OpenFile(string(m), os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer f.Close()
	_, err = fmt.Fprintf(f, "MemTotal: %10d kB\nMemFree: %10d kB\nMemAvailable: %10d kB\n", 8<<20, mib<<10, mib<<10)
	must(t, err)
}

// TestRegrade makes one voter's memory short, as its agent reads it: its server
// steps down to etcd-only, with the same member, and back up when its owner says so.
// A client writes all the time.
func TestRegrade(t *testing.T) {
	if os.Getenv(program) == "" {
		t.Skipf("SKIPPED: %s is not set: 'make k3s-test' builds it and runs this test", program)
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no mount namespace, in which the agents read another memory: %v %s", err, out)
	}
	beside(t)
	// Two API servers, and a third voter without one by its owner's settings.
	f := &fleet{k3s.Empty(t, k3s.Options{Env: k3s.Quick}), t}
	etcdOnly := "disable-apiserver: true\ndisable-controller-manager: true\ndisable-scheduler: true\n"
	for _, name := range []string{"h1", "h2", "h3"} {
		h := f.Add(name)
		if name == "h3" {
			f.Configure(h, "server: "+f.Host("h1").ServerURL()+"\n"+etcdOnly)
		}
		f.Start(h)
		f.WaitVoting(h)
	}
	f.WaitAPI()
	f.Configure(f.Host("h1"), "server: "+f.Host("h2").ServerURL()+"\n")
	f.Wait("h2 has an API server", func(context.Context) error { return serves(f.Host("h2"), true) })

	dir := t.TempDir()
	memory := func(host string) meminfo { return meminfo(filepath.Join(dir, host+".meminfo")) }
	for _, h := range []string{"h1", "h2", "h3"} {
		memory(h).available(t, 6<<10)
	}
	s := run(f, func(host string) []string {
		return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /proc/meminfo && exec "$@"`, string(memory(host))}
	})
	for _, h := range []string{"h1", "h2", "h3"} {
		if said, err := s.says("host", "eligible", h); err != nil {
			t.Fatal(said)
		}
	}
	judge := f.written(t, "h1", "h3")
	member := f.member(t, "h2")

	memory("h2").available(t, 100) // of 8 GiB; the floor is 256 MiB
	down := s.regraded(t, "it steps down", fitness.EtcdOnly, nil)
	if down.By != membership.ByController {
		t.Errorf("it was asked for by %s", down.By)
	}
	f.Wait("h2 has no API server", func(context.Context) error { return serves(f.Host("h2"), false) })
	s.grade(t, "h2", fitness.EtcdOnly)
	s.grade(t, "h3", fitness.EtcdOnly)
	s.grade(t, "h1", fitness.Full)
	said, err := s.says("plan")
	if err != nil || !strings.Contains(said, "grade-not-full(h2)") || strings.Contains(said, "grade-not-full(h3)") {
		t.Errorf("plan says (%v):\n%s", err, said)
	}

	memory("h2").available(t, 6<<10)
	s.regraded(t, "it steps up", fitness.Full, func() error {
		if said, err := s.says("regrade", "h2", "full", "--yes", "--by", "anna"); err != nil { // the cooldown holds
			return errors.New(said)
		}
		return nil
	})
	f.Wait("h2 has an API server again", func(context.Context) error { return serves(f.Host("h2"), true) })
	s.grade(t, "h2", fitness.Full)
	if now := f.member(t, "h2"); now != member {
		t.Errorf("the member of h2 is %s, and was %s", now, member)
	}
	f.untilMembers(t, "h1", "h1", "h2", "h3")
	judge()
}

// serves is nil where the server leads to an API, or does not.
func serves(h *k3s.Host, want bool) error {
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := c.Get(h.ServerURL() + "/version")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if got := r.StatusCode != http.StatusServiceUnavailable; got != want { // one that wants to know who asks is one
		return errors.New(r.Status)
	}
	return nil
}

// regraded waits for a regrade of h2, which is asked for unless it comes by itself.
func (s *suffrage) regraded(t *testing.T, what string, to fitness.Grade, ask func() error) (ended membership.Operation) {
	t.Helper()
	s.Wait(what, func(context.Context) error {
		if ask != nil {
			if err := ask(); err != nil {
				return err
			}
			ask = nil
		}
		text, err := s.says("operations", "list", "-o", "json")
		if err != nil {
			return errors.New(text)
		}
		var all []membership.Operation
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return fmt.Errorf("%w in %s", err, text)
		}
		if len(all) == 0 || all[0].To != to || all[0].Open() {
			said, _ := s.says("plan")
			return errors.New(said)
		}
		ended = all[0]
		return nil
	})
	t.Logf("%s: %s %s, %s", ended.Title(), ended.Outcome, ended.TurnedBack, ended.Ended.Sub(ended.Begun))
	if b, _ := json.MarshalIndent(ended, "", " "); ended.Outcome != membership.Completed || ended.Regrade != "h2" {
		t.Fatalf("%s", b)
	}
	return ended
}

// grade is that of a host by the status.
func (s *suffrage) grade(t *testing.T, host string, want fitness.Grade) {
	t.Helper()
	text, err := s.says("status", "-o", "json")
	var status struct {
		Hosts []struct {
			Host  string        `json:"host"`
			Grade fitness.Grade `json:"grade"`
		} `json:"hosts"`
	}
	if err != nil || json.Unmarshal([]byte(text), &status) != nil {
		t.Fatalf("status: %v: %s", err, text)
	}
	for _, h := range status.Hosts {
		if h.Host == host && h.Grade != want {
			t.Errorf("%s is told as %q, want %s", host, h.Grade, want)
		}
	}
}
