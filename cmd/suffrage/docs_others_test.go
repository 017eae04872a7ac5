package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"suffrage/demo"
	"suffrage/member/membertest"
	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/pages"
	"suffrage/mesh-tests/record"
)

// observed begins each `suffrage observe` that a page shows, since one takes a minute,
// and gives what waits for their end.
func (f *ownersFleet) observed(t *testing.T) (wait func()) {
	t.Helper()
	client := filepath.Join(f.dir, "client")
	for name, from := range map[string]string{"ca.crt": demo.CAFile, "client.crt": demo.CertFile, "client.key": demo.KeyFile,
		"healthcheck-client.crt": demo.CertFile, "healthcheck-client.key": demo.KeyFile} {
		b, err := os.ReadFile(filepath.Join(f.dir, "h1", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(client, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plain := membertest.New(t, membertest.Options{Size: 1}).Endpoints()[0]
	var waits []func()
	for _, page := range []string{"README.md", "docs/observe.md"} {
		for _, c := range pages.Of(t, pages.Run, page) {
			t.Logf("%s:%d: %s", c.Page, c.Line, c.Text)
			cmd := f.shell(t, "h1", strings.Replace(c.Text, "http://127.0.0.1:2379", plain, 1))
			var said, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &errs
			begin, end := cmd.Start, cmd.Wait
			if strings.HasPrefix(c.Text, "go build") { // the next one is what it builds
				begin, end = cmd.Run, func() error { return nil }
			}
			if err := begin(); err != nil {
				t.Fatalf("%s:%d: %s: %v: %s", c.Page, c.Line, c.Text, err, &errs)
			}
			waits = append(waits, func() {
				if err := end(); err != nil {
					t.Errorf("%s:%d: %s: %v: %s%s", c.Page, c.Line, c.Text, err, &said, &errs)
				}
				if strings.Contains(c.Text, "observe") && !strings.Contains(said.String(), "MEMBER") {
					t.Errorf("%s:%d: %s: it says\n%s", c.Page, c.Line, c.Text, &said)
				}
			})
		}
	}
	return func() {
		for _, w := range waits {
			w()
		}
	}
}

// others types what pages show that are no tutorial and no how-to, each command by
// itself, on the fleet that the how-tos leave: h5 votes, and h3 has just lost its vote.
func (f *ownersFleet) others(t *testing.T) {
	t.Helper()
	on := f.recorded()
	newest, _ := filepath.Glob(filepath.Join(f.dir, on, "data", "decisions", "*.inputs.json"))
	for _, h := range []string{"h1", "h2", "h3"} { // the controllers of a real fleet are on all its voters
		if err := os.MkdirAll(filepath.Join(f.dir, h, "data", "decisions"), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range []string{"docs/inputs.md", "docs/report.md", "docs/snapshots.md", "docs/swap.md", "docs/k3s-install.md"} {
		for _, c := range pages.Of(t, pages.Run, page) {
			c.Text = strings.Replace(c.Text, "FILE.inputs.json", newest[0], 1)
			if strings.HasPrefix(c.Text, "suffrage mode active") || strings.HasPrefix(c.Text, "suffrage swap") {
				f.saysYes(t, c, strings.Replace(c.Text, "swap h2 h5", "swap h2 h4", 1))
				continue
			}
			f.typed(t, c, on, "")
		}
	}
	// In the words of runbooks.
	done := map[string]bool{}
	for _, page := range pages.All(t) {
		if !strings.HasPrefix(page, "docs/runbooks/") {
			continue
		}
		for _, c := range pages.Commands(t, page) {
			if pages.By(c) != pages.Run || done[c.Text] {
				continue
			}
			done[c.Text] = true
			id := run1[[]struct{ ID string }](f, "h1", "operations", "list")[0].ID
			if _, err := exec.LookPath("curl"); err != nil && strings.HasPrefix(c.Text, "curl ") {
				t.Logf("SKIPPED: there is no curl here: %s", c.Text)
				continue
			}
			c.Text = strings.NewReplacer("HOST", "h4", "ID", id, "DIR", "/var/lib/suffrage/decisions", "ADDRESS", "127.0.1."+strings.Replace(on, "h", "10", 1)).Replace(c.Text)
			f.typed(t, c, "h1", "") // which votes all the time
		}
	}
}

// saysYes types a command at a terminal, and yes where it is asked for, until it is done:
// what was refused, or turned back, is asked for again.
func (f *ownersFleet) saysYes(t *testing.T, c pages.Command, command string) {
	t.Helper()
	t.Logf("%s:%d: %s", c.Page, c.Line, command)
	args := append(words(command)[1:], "--config", filepath.Join(f.dir, "h1", "suffrage.yaml"))
	said := ""
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		x := onTerminal(t, 100, 30, nil, args...)
		asked := false
		for over := false; !over; {
			if !asked && strings.Contains(x.all(), "Type yes to go on: ") {
				asked = true
				x.press("yes\n")
			}
			select {
			case err := <-x.done:
				over = true
				if said = x.all(); err == nil && asked {
					return
				}
			case <-time.After(20 * time.Millisecond):
			}
		}
		if strings.Contains(said, "undone") {
			f.run("h1", "clear-quarantine", words(command)[3])
		}
	}
	t.Fatalf("%s:%d: %s said\n%s", c.Page, c.Line, command, said)
}

// TestDocsGo runs what pages show of go test: recordings that are judged again, and
// benchmarks, each once.
func TestDocsGo(t *testing.T) {
	inFull(t) // it compiles other tests
	dir := t.TempDir()
	h := history.History{{Key: "k", Put: "1", Call: 1, Return: 2}, {Key: "k", Got: "1", Call: 3, Return: 4}}
	three := []string{"h1", "h2", "h3"}
	r := record.Recording{Rules: record.Rules{Least: 3, Most: 4, Clusters: 1}, History: h, Writes: history.Writes{Acknowledged: 1},
		Members: []record.Members{{At: 1, Cluster: "a", Voters: three}, {At: 2, Cluster: "a", Voters: three}}}
	file, err := os.Create(filepath.Join(dir, "history"))
	if err == nil {
		err = errors.Join(h.Write(file), file.Close(), r.Write(dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"mesh-tests/README.md", "docs/reliability.md", "docs/performance.md"} {
		for _, c := range pages.Of(t, pages.Go, page) {
			command := strings.NewReplacer("DIRECTORY", dir, "FILE", file.Name(), "-bench", "-benchtime 1x -bench").Replace(c.Text)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
			cmd.Dir = top(t)
			said, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(`--- PASS|ns/op`).Match(said) || bytes.Contains(said, []byte("SKIP")) {
				t.Errorf("%s:%d: %s: %v\n%s", c.Page, c.Line, command, err, said)
			}
		}
	}
}
