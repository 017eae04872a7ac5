package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.yaml.in/yaml/v3"

	"suffrage/membership"
	"suffrage/membership/etcd"
	pages "suffrage/page"
)

// TestFleetOwner says everything that can be said through the page to a fleet that acts:
// marks, a pause, and a swap, which is followed on the page until etcd has other voters.
// Whatever the page said is asked for again elsewhere: of etcd, of the commands, of the
// page of the other controller.
func TestFleetOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	base, _ := demo(t, "--mode", "active", "--slow", "h3=0s", "--stall-time", "10s", "--dir", dir)
	waitForPage(t, base)
	w := &words{t: t, dir: dir, base: base, tab: open(t, base, "/")}
	w.tab.eventually("all are fit", func() error {
		m, err := model(base)
		if err == nil && (m.Quorum.Fit != 3 || m.Decision.Kind != membership.Steady) {
			err = fmt.Errorf("%d voters are fit, %s", m.Quorum.Fit, pages.Headline(m.Decision))
		}
		return err
	})

	// A voter that is pinned is not taken away, and the page says so before anybody
	// confirms anything.
	w.say("/hosts/h1", "pin", "h1", "h1 is pinned, said by anna")
	w.tab.until("main", "pinned")
	w.marked("h1", "pinned")
	w.refused("h1", "h5", "pinned")
	w.say("/hosts/h1", "unpin", "h1", "h1 is eligible, said by anna")
	w.marked("h1", "eligible")

	w.say("/hosts/h5", "ineligible", "h5", "h5 is ineligible, said by anna")
	w.marked("h5", "ineligible")
	w.refused("h3", "h5", "eligible")
	w.say("/hosts/h5", "eligible", "h5", "h5 is eligible, said by anna")
	w.marked("h5", "eligible")

	w.say("/", "pause", "", "paused, said by anna")
	w.tab.until("main", "Paused by anna, through the page on h1")
	w.paused(true)
	w.refused("h3", "h5", "paused")
	w.say("/", "resume", "", "resumed, said by anna")
	w.paused(false)

	w.swap("h3", "h5")
	w.report("h3 → h5")
}

// words are what an owner says to a fleet through the page of h1.
type words struct {
	t    *testing.T
	dir  string
	base string
	tab  *tab
}

// say follows a link on a page to what would be done, and confirms it.
func (w *words) say(path, verb, host, done string) {
	w.t.Helper()
	b := w.tab
	b.do(chromedp.Navigate(w.base + path))
	b.live()
	b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`a[href^="/owner?verb=%s"]`, verb))))
	b.until("h1", strings.TrimSpace(verb+" "+host)+"?")
	b.until("#h-what", "What will be done")
	w.confirm()
	b.until("h1", "Done: "+strings.TrimSpace(verb+" "+host))
	b.until("main", done)
	b.do(chromedp.Click(chromedp.CSS("main > p > a")))
	b.live()
}

// confirm types who and why, and says yes.
func (w *words) confirm() {
	w.t.Helper()
	js[bool](w.tab, `document.querySelector("input[name=by]").focus(); true`)
	w.tab.do(chromedp.KeyEvent("anna"))
	js[bool](w.tab, `document.querySelector("input[name=reason]").focus(); true`)
	w.tab.do(chromedp.KeyEvent("to see it"), chromedp.Click(chromedp.CSS("form.say button")))
}

// marked asks the command for a host's mark and who gave it.
func (w *words) marked(host, want string) {
	w.t.Helper()
	var hosts []struct {
		Host string
		Mark membership.Mark
	}
	said := w.command("host", "list", "-o", "json")
	if err := json.Unmarshal(said, &hosts); err != nil {
		w.t.Fatalf("%v: %s", err, said)
	}
	for _, h := range hosts {
		if h.Host == host && h.Mark.Word() == want && strings.Contains(string(said), "anna, through the page on h1 from 127.0.0.1:") {
			return
		}
	}
	w.t.Errorf("host list: %s is not %s: %s", host, want, said)
}

// paused asks the page of the other controller.
func (w *words) paused(want bool) {
	w.t.Helper()
	w.tab.eventually("the other controller knows", func() error {
		m, err := model(strings.Replace(w.base, ".101:", ".102:", 1))
		if err == nil && (m.Paused == nil || m.Paused.Value != want) {
			err = fmt.Errorf("paused is %+v", m.Paused)
		}
		return err
	})
}

// asked is what the page says of a swap: what it would do, or why it would be refused.
func (w *words) asked(out, in string) (does, problem string) {
	w.t.Helper()
	b := w.tab
	b.do(chromedp.Navigate(w.base + "/"))
	b.live()
	b.eventually("both can be chosen", func() error {
		if !js[bool](b, fmt.Sprintf(`(() => { const [a, b] = ["host", "in"].map((n) => document.querySelector("select[name=" + n + "]"));
			a.value = %q; b.value = %q; return a.value === %[1]q && b.value === %[2]q; })()`, out, in)) {
			return errors.New(b.text("form.says"))
		}
		return nil
	})
	b.do(chromedp.Click(chromedp.CSS("form.says button")))
	b.until("h1", "swap "+out+" "+in+"?")
	return b.text(".what"), b.text(".problem")
}

func (w *words) refused(out, in, why string) {
	w.t.Helper()
	does, problem := w.asked(out, in)
	if does != "" || !strings.Contains(problem, "would be refused") || !strings.Contains(problem, why) {
		w.t.Errorf("swap %s %s would do %q, %q; want it refused: %s", out, in, does, problem, why)
	}
}

// swap has a voter swapped. On a machine that does something else meanwhile nobody may be
// fit for a while, which refuses it, or the newcomer gets slow and it turns back: it is
// asked for again then.
func (w *words) swap(out, in string) {
	w.t.Helper()
	before := w.voters()
	for try := 1; ; try++ {
		var does string
		w.tab.eventually("the swap would be done", func() (err error) {
			var problem string
			if does, problem = w.asked(out, in); does == "" {
				err = errors.New(problem)
			}
			return err
		})
		for _, want := range []string{"the owner asked for it", "save a snapshot", "promote " + in, "fence " + out} {
			if !strings.Contains(does, want) {
				w.t.Errorf("of %s it is not shown before: %s", want, does)
			}
		}
		w.tab.picture("asked")
		if now := w.voters(); !slices.Equal(now, before) {
			w.t.Fatalf("nobody has confirmed anything, and %v vote, not %v", now, before)
		}
		w.confirm()
		w.tab.eventually("it is taken, or shown anew", func() error {
			if js[bool](w.tab, `document.readyState === "complete" && Boolean(document.querySelector("main [role=status], main .problem"))`) {
				return nil
			}
			return errors.New(w.tab.text("main"))
		})
		problem := w.tab.text(".problem")
		if problem == "" {
			w.tab.until("h1", "Asked for: swap "+out+" "+in)
			if problem = w.follow(out, in); problem == "" {
				break
			}
			w.command("clear-quarantine", in)
		}
		if try == 3 {
			w.t.Fatalf("try %d: %s", try, problem)
		}
		w.t.Logf("try %d: %s", try, problem)
	}
	want := append(slices.DeleteFunc(before, func(h string) bool { return h == out }), in)
	if now := w.voters(); !slices.Equal(now, want) {
		w.t.Errorf("in etcd %v vote, want %v", now, want)
	}
}

// watch keeps every state of the steps that the page has shown.
const watch = `(() => {
  window.states = [];
  const see = () => {
    const s = [...document.querySelectorAll(".timeline li .step")].map((e) => e.textContent.trim()).join(" ");
    if (s && s !== window.states.at(-1)) window.states.push(s);
  };
  new MutationObserver(see).observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true });
  see();
  return true;
})()`

// follow watches the operation on the first page and on its own, and gives why it did not
// complete.
func (w *words) follow(out, in string) (problem string) {
	w.t.Helper()
	b := w.tab
	b.do(chromedp.Click(chromedp.CSS("main > p > a")))
	b.live()
	js[bool](b, watch)
	id, refused := "", ""
	b.eventually("it is taken up, or refused", func() error {
		m, err := model(w.base)
		if err != nil {
			return err
		}
		ops := m.Operations
		if i := slices.IndexFunc(ops, func(op membership.Operation) bool {
			return op.Out == out && op.In == in && (op.Open() || op.Outcome == membership.Completed)
		}); i >= 0 {
			id = ops[i].ID
			return nil
		}
		if m.Request == nil && m.Decision.Kind == membership.Refused {
			refused = "refused: " + pages.Headline(m.Decision)
			return nil
		}
		return fmt.Errorf("request %v, %s", m.Request, pages.Headline(m.Decision))
	})
	if id == "" {
		return refused
	}
	b.eventually("it is over", func() error {
		row := b.text("table.ops tr[data-key='o-" + id + "']")
		if !strings.Contains(row, out+" → "+in) || !strings.Contains(row, "completed") && !strings.Contains(row, "undone") {
			return errors.New(row)
		}
		return nil
	})
	states := js[[]string](b, "window.states")
	b.do(chromedp.Navigate(w.base + "/operations/" + url.PathEscape(id)))
	b.live()
	title := b.text("h1")
	if strings.Contains(title, "undone") {
		why := b.text(".problem")
		if !strings.Contains(why, "It turned back, because ") {
			w.t.Errorf("%s: and it is not said why: %q", title, why)
		}
		return title + ": " + why
	}
	if !strings.Contains(title, "completed") {
		w.t.Errorf("the page calls it %q", title)
	}
	b.picture("completed")
	b.until(".facts", "anna, through the page on h1 from 127.0.0.1:")
	steps := b.text(".timeline")
	for _, name := range []string{"snapshot", "join", "promote", "soak", "remove", "record"} {
		if !strings.Contains(steps, "✓"+name) {
			w.t.Errorf("the step %s is not in %q", name, steps)
		}
	}
	// What was seen while it went on. On a busy machine that may be one state only, since
	// the page looks every two seconds.
	if len(states) == 0 || !strings.Contains(states[0], "▸") {
		w.t.Errorf("no step was seen under way: %q", states)
	}
	w.t.Logf("seen on the page: %s", strings.Join(states, "; "))
	return ""
}

// report looks at the report of all that: a file that needs nothing else, on a phone, in
// light and dark.
func (w *words) report(change string) {
	w.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(w.dir, "h*", "data", "decisions"))
	if err != nil || len(dirs) == 0 {
		w.t.Fatalf("no records: %v", err)
	}
	html := w.command(append([]string{"report", "--from", "1h", "-o", "html"}, dirs...)...)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = rw.Write(html)
		}
	}))
	w.t.Cleanup(server.Close)
	b := open(w.t, server.URL, "/", phone())
	b.until("h1", "Suffrage ")
	if text := b.text("main"); !strings.Contains(text, change) {
		w.t.Errorf("the report does not have %s: %s", change, text)
	}
	for _, isDark := range []bool{false, true} {
		b.do(dark(isDark))
		if wide := js[int](b, `document.documentElement.scrollWidth`); wide > 360 {
			w.t.Errorf("the report is %d wide on a phone of 360", wide)
		}
		if worst := js[string](b, contrast); worst != "" {
			w.t.Errorf("the report, dark %v: contrast %s", isDark, worst)
		}
		b.picture(fmt.Sprintf("report-dark-%v", isDark))
	}
	for _, asked := range b.asked {
		if path := strings.TrimPrefix(asked, server.URL); path != "/" && path != "/favicon.ico" {
			w.t.Errorf("the report asks for %s", asked)
		}
	}
}

// command runs one on h1.
func (w *words) command(args ...string) []byte {
	w.t.Helper()
	c := exec.CommandContext(w.t.Context(), os.Getenv("SUFFRAGE_BIN"), append(args, "--config", filepath.Join(w.dir, "h1", "suffrage.yaml"))...)
	c.Stderr = w.t.Output()
	out, err := c.Output()
	if err != nil {
		w.t.Fatalf("suffrage %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// voters asks etcd itself.
func (w *words) voters() (names []string) {
	w.t.Helper()
	var s struct {
		Etcd etcd.Config `yaml:"etcd"`
	}
	b, err := os.ReadFile(filepath.Join(w.dir, "h1", "suffrage.yaml"))
	if err == nil {
		err = yaml.Unmarshal(b, &s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := s.Etcd.Client()
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range list.Members {
		if !m.IsLearner {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}
