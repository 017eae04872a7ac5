package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"suffrage/fitness"
	pages "suffrage/page"
)

// demo runs `suffrage demo` until it is stopped. It gives the address of its page, and
// what ends it.
func demo(t *testing.T, flags ...string) (base string, end func()) {
	t.Helper()
	program := os.Getenv("SUFFRAGE_BIN")
	if program == "" || os.Getenv("SUFFRAGE_CHROMIUM") == "" {
		t.Skip("SUFFRAGE_BIN and SUFFRAGE_CHROMIUM name no programs; `make page-test` builds and looks for them and runs this")
	}
	said := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := exec.Command(program, append([]string{"demo", "--until", "stopped"}, flags...)...)
	c.Stderr = out
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	gone := false
	end = func() {
		if gone {
			return
		}
		gone = true
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Errorf("the demo: %v", err)
		}
	}
	t.Cleanup(func() {
		end()
		if b, err := os.ReadFile(said); err == nil && t.Failed() {
			t.Logf("%s", b)
		}
	})
	address := regexp.MustCompile(`the page: (http://[0-9.:]+)/`)
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		b, _ := os.ReadFile(said)
		if m := address.FindSubmatch(b); m != nil {
			return string(m[1]), end
		}
	}
	t.Fatal("the demo tells no page's address")
	return "", end
}

// model is what a controller tells at this moment.
func model(base string) (m pages.Model, err error) {
	resp, err := http.Get(base + "/v1/fleet")
	if err != nil {
		return m, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return m, err
	}
	if resp.StatusCode != http.StatusOK {
		return m, fmt.Errorf("%s: %s", resp.Status, b)
	}
	return m, json.Unmarshal(b, &m)
}

// TestFleet keeps one page open while a real fleet starts, a voter becomes slow and the
// controllers end. How the standbys are on a busy machine is not known, so the decision
// is compared with what the controller says, whatever that is.
func TestFleet(t *testing.T) {
	base, end := demo(t, "--mode", "dry-run", "--slow", "h3=150ms") // h3 gets slow once all are fit
	waitForPage(t, base)
	b := open(t, base, "/")
	js[bool](b, "window.since = 1; true")
	b.eventually("the voters are listed", func() error {
		if got := strings.Fields(strings.NewReplacer("★ (leads etcd)", "").Replace(b.text("#voters"))); !slices.Equal(got, []string{"h1", "h2", "h3"}) {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
	for _, h := range []string{"h1", "h2", "h3", "h4", "h5"} {
		want := h // a voter, or the leader
		if h > "h3" {
			want = "standby"
		}
		b.until(fmt.Sprintf(`tr[data-key="h-%s"]`, h), want)
	}
	b.until(`tr[data-key="h-h3"]`, "✕ unfit")
	b.until(`tr[data-key="r-h3"]`, "limit 100 ms")
	b.until("#h-why", "W") // what holds it back, or what would be done
	b.eventually("the reason is the controller's", func() error {
		m, err := model(base)
		if err != nil {
			return err
		}
		want := pages.Headline(m.Decision)
		if got := b.text("#decision"); got != want {
			return fmt.Errorf("the page says %q, the controller %q", got, want)
		}
		section := b.text("section[aria-labelledby=h-why]")
		for _, r := range m.Decision.Refusals {
			if !strings.Contains(section, string(r.Code)) || !strings.Contains(section, strings.ReplaceAll(r.Next, "`", "")) {
				return fmt.Errorf("%s is not in %q", r, section)
			}
		}
		if p := m.Decision.Plan; p != nil && !strings.Contains(section, p.String()) {
			return fmt.Errorf("%s is not in %q", p, section)
		}
		return nil
	})
	b.picture("slow")
	if !js[bool](b, "window.since === 1") {
		t.Error("the page was loaded anew")
	}

	events := open(t, base, "/events")
	events.until(".events", "h3 was ")

	one := open(t, base, "/hosts/h3")
	one.until("h1", "h3 ✕ unfit")
	one.eventually("the windows are drawn", func() error {
		// A round trip's bars are past the limit.
		if !js[bool](one, `Boolean(document.querySelector('figure.over[data-key^="rtt-"] path.bad')?.getAttribute("d").length > 500)`) {
			return errors.New("no bars")
		}
		return nil
	})
	one.picture("host")

	// The other controller stands by, or leads: both show the same fleet.
	one.eventually("both controllers say the same", func() error {
		m, err := model(strings.Replace(base, ".101:", ".102:", 1))
		if err != nil {
			return err
		}
		first, err := model(base)
		if err != nil {
			return err
		}
		if m.Leads == first.Leads || m.Controller != first.Controller || m.Controller == "" || m.Quorum.Voters != 3 {
			return fmt.Errorf("the one on h2 says leads %v under %q with %d voters, the one on h1 %v under %q", m.Leads, m.Controller, m.Quorum.Voters, first.Leads, first.Controller)
		}
		for i, h := range m.Hosts {
			if h.Name != first.Hosts[i].Name || h.Role == "standby" != (h.Name > "h3") || h.Name == "h3" && h.Verdict.Status != fitness.Unfit {
				return fmt.Errorf("to the one on h2 it is %+v", h)
			}
		}
		return nil
	})

	end()
	b.until("#lost", "Connection lost at ")
	b.until("#live-word", "not live: ")
	b.until("#voters", "h1") // from before, and said to be
}

func waitForPage(t *testing.T, base string) {
	t.Helper()
	var err error
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(200 * time.Millisecond) {
		if _, err = model(base); err == nil {
			return
		}
	}
	t.Fatal("the page does not answer: ", err)
}
