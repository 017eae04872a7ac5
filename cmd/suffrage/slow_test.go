package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"suffrage/identity"
	"suffrage/member/membertest"
)

// waits are the commands that ask etcd or agents, as they are given to an etcd that does
// not answer: each says after two seconds that it waits, and for what.
var waits = []string{
	"status", "qualify", "explain h1", "plan", "host list", "host pin h1", "host unpin h1", "host eligible h1", "host ineligible h1",
	"mode", "mode dry-run", "pause", "resume", "clear-quarantine h1", "operations list", "operations show x", "operations withdraw h1", "operations stop x",
	"swap h1 h2", "regrade h1 full", "target", "target 5", "remove-dead h1", "snapshot save", "cluster accept 1",
}

// saysItself are those that do not: what they do is done at once, goes on for as long as
// somebody wants it, or has progress of its own, with the reason.
var saysItself = map[string]string{
	"top":                "it is a picture with the age of what it shows",
	"observe":            "it measures for as long as --for, and counts the time",
	"demo":               "it tells a story",
	"decide":             "one file",
	"replay":             "a line each",
	"report":             "it counts what it has read",
	"snapshot list":      "it says so while it reads files to their end",
	"snapshot verify":    "it says so while it reads, or drills",
	"snapshot restore":   "it says so while it copies",
	"cluster create":     "TestClusterFromCreateToReset",
	"cluster reset":      "TestClusterFromCreateToReset",
	"agent":              "it logs",
	"controller":         "it logs",
	"member":             "it logs",
	"identity init":      "files of this host",
	"identity show":      "files of this host",
	"identity ca init":   "files of this host",
	"identity request":   "files of this host",
	"identity sign":      "files of this host",
	"identity check":     "files of this host",
	"identity datastore": "files of this host",
	"config check":       "files of this host",
	"config example":     "what the program knows",
	"standby check":      "it says so while it asks the agents",
	"standby prepare":    "it says so while units are loaded",
	"standby remove":     "it says so while it asks etcd whether the host votes",
	"man":                "what the program knows",
}

// TestSlowIsSaid has an etcd that takes connections and answers nothing.
func TestSlowIsSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until etcd is given up")
	}
	known := map[string]bool{}
	for name := range saysItself {
		known[name] = true
	}
	for _, command := range waits {
		c, _, err := newRoot().Find(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		known[strings.TrimPrefix(c.CommandPath(), "suffrage ")] = true
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "suffrage ")
		if c.Runnable() && !c.HasSubCommands() && !c.Hidden && !known[name] {
			t.Errorf("suffrage %s: does it wait for anything?", name)
		}
		delete(known, name)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	for name := range known {
		t.Errorf("there is no suffrage %s", name)
	}

	c := membertest.New(t, membertest.Options{Size: 1})
	o := newOwner(t, c.Members[0])
	second, err := identity.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	roster := filepath.Join(filepath.Dir(o.settings), "roster.yaml")
	if err := os.WriteFile(roster, fmt.Appendf([]byte(contentOf(t, roster)), "  - {name: h2, address: 127.9.9.9, fingerprint: %q}\n", second.Fingerprint()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.settings, []byte(strings.Replace(contentOf(t, o.settings), "timeout: 20s", "timeout: 4s", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Members[0].Signal(syscall.SIGSTOP)
	defer c.Members[0].Signal(syscall.SIGCONT)
	var all sync.WaitGroup
	for _, command := range waits {
		all.Go(func() {
			var errs told
			run(t.Context(), append(strings.Fields(command), "--config", o.settings), io.Discard, &errs)
			if first, _, _ := strings.Cut(errs.String(), "\n"); !strings.HasPrefix(first, "still ") {
				t.Errorf("suffrage %s began with %q", command, first)
			}
		})
	}
	all.Wait()
}

// told is written to by a command and by its clock.
type told struct {
	mu sync.Mutex
	b  strings.Builder
}

func (w *told) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *told) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
