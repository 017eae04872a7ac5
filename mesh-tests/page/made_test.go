package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"suffrage/page"
	"suffrage/page/pagetest"
)

// made serves the page of a fleet that is made up.
func made(t *testing.T, f pagetest.Fleet) (*pagetest.Source, *httptest.Server) {
	t.Helper()
	s := &pagetest.Source{}
	s.Set(f)
	history := &page.History{}
	l, _ := s.Look(t.Context())
	history.Take(l.Decision)
	server := httptest.NewServer(page.New(page.Options{Source: s, History: history, Host: "h1", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}))
	t.Cleanup(server.Close)
	return s, server
}

func TestAnswersAtAGlance(t *testing.T) {
	_, server := made(t, pagetest.Fleet{Slow: "h3", Reason: "has the UPS"})
	b := open(t, server.URL, "/")
	for selector, want := range map[string]string{
		"#quorum":                        "At the edge",
		"#voters":                        "h1 h2★ (leads etcd) h3",
		"#decision":                      "Would swap h3 → h4",
		"#now":                           "No operation",
		"#live-word":                     "live",
		`tr[data-key="h-h3"]`:            "unfit",
		`tr[data-key="h-h4"]`:            "standby",
		`text[data-key="p-h1-h3"]`:       "",
		"section[aria-labelledby=h-why]": "with h4 in its place 0 of 2 violating pairs remain",
	} {
		b.until(selector, want)
	}
	if got := js[string](b, `document.querySelector('text[data-key="p-h1-h3"]').textContent`); !strings.Contains(got, "✕ 2") {
		t.Errorf("the link of h1 and h3 is labelled %q", got)
	}
	if n := js[int](b, `document.querySelectorAll("svg.fleet a.node").length`); n != 5 {
		t.Errorf("%d hosts are drawn", n)
	}
	b.picture("light")
	b.do(chromedp.Click(chromedp.CSS(`tr[data-key="h-h3"] a`)))
	b.until("h1", "h3 ✕ unfit")
	if n := js[int](b, `[...document.querySelectorAll("figure svg")].filter(s => s.querySelector(".limit") && s.querySelector(".good").getAttribute("d") + s.querySelector(".bad").getAttribute("d")).length`); n != 12 {
		t.Errorf("%d windows are drawn", n)
	}
	b.picture("host")
}

// What changes is put in place: nothing is loaded anew, and whoever reads is not
// disturbed.
func TestLive(t *testing.T) {
	s, server := made(t, pagetest.Fleet{})
	b := open(t, server.URL, "/")
	b.until(`tr[data-key="h-h3"]`, "✓ fit")
	js[bool](b, `window.since = 1; document.querySelector("details").open = true; document.querySelector('tr[data-key="h-h3"] a').focus(); true`)
	s.Set(pagetest.Fleet{Slow: "h3", Open: true})
	b.until(`tr[data-key="h-h3"]`, "✕ unfit")
	b.until("#now", "swap h3 → h4")
	b.until(".timeline", "join")
	if !js[bool](b, `window.since === 1 && document.querySelector("details").open && document.activeElement === document.querySelector('tr[data-key="h-h3"] a')`) {
		t.Error("the page was loaded anew, or lost its focus or an opened detail")
	}
	b.picture("under-way")
	s.Set(pagetest.Fleet{})
	b.until("#now", "No operation")
	b.until("#decision", "Nothing needs doing")
	if js[bool](b, `Boolean(document.querySelector(".timeline, .reasons"))`) {
		t.Error("what is over is still there")
	}
}

// Nobody may take figures from before for those of now.
func TestSaysHowOldItIs(t *testing.T) {
	s, server := made(t, pagetest.Fleet{})
	b := open(t, server.URL, "/")
	b.live()
	if !js[bool](b, `document.getElementById("lost").hidden`) {
		t.Error("it says that something is wrong")
	}
	s.Late(time.Hour)
	b.until("#live-word", "not live: 1 h 0 min old")
	b.until("#lost", "its last look at the fleet is old")
	s.Set(pagetest.Fleet{})
	b.live()
	s.Fail(errors.New("etcd did not answer in time at any of https://100.64.0.1:2379"))
	b.until("#lost", "etcd did not answer in time")
	b.until("#voters", "h1 h2★") // from before

	address := server.Listener.Addr().String()
	server.CloseClientConnections()
	server.Close()
	b.until("#lost", "Connection lost at ")
	b.until("#live-word", "not live: ")
	b.picture("lost")
	s.Set(pagetest.Fleet{Slow: "h3"})
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again := &http.Server{Handler: server.Config.Handler}
	go func() { _ = again.Serve(l) }()
	t.Cleanup(func() { _ = again.Close() })
	b.until(`tr[data-key="h-h3"]`, "✕ unfit")
	b.live()
}

func TestKeyboard(t *testing.T) {
	_, server := made(t, pagetest.Fleet{Slow: "h3"})
	b := open(t, server.URL, "/")
	b.live()
	b.do(chromedp.KeyEvent(kb.Tab))
	if !js[bool](b, `document.activeElement.className === "skip" && document.activeElement.getBoundingClientRect().left >= 0`) {
		t.Error("the first Tab does not show the skip link")
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.eventually("the skip link leads to the content", func() error {
		if got := js[string](b, `document.activeElement.id`); got != "main" {
			return fmt.Errorf("focus is on %q", got)
		}
		return nil
	})
	seen := map[string]bool{}
	for range 80 {
		b.do(chromedp.KeyEvent(kb.Tab))
		got := js[[]string](b, `(e => [e.getAttribute("href") || e.tagName, getComputedStyle(e).outlineStyle])(document.activeElement)`)
		if got[0] == "BODY" {
			break
		}
		if seen[got[0]] = true; got[1] == "none" {
			t.Errorf("the focus on %s cannot be seen", got[0])
		}
	}
	for _, want := range []string{"/hosts/h1", "/hosts/h5", "SUMMARY", "/operations/20260301t000000-1", "/events", "/v1/fleet"} {
		if !seen[want] {
			t.Errorf("no key leads to %s", want)
		}
	}
	js[bool](b, `document.querySelector('svg.fleet a[href="/hosts/h5"]').focus(); true`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("h1", "h5")
}

// contrast is the lowest of the texts' on the page by WCAG's formula, with the text, if
// that is below what WCAG's level AA wants.
const contrast = `(() => {
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = rgb(c).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\)$/.test(c)) return c; } return "rgb(255,255,255)"; };
  let worst = [99, ""];
  for (const e of document.querySelectorAll("body *:not(svg *), svg text")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.matches(".quiet, .skip, noscript, script")) continue;
    const shape = e.matches("svg .glyph") && e.parentElement.querySelector("circle, rect"); // which the glyph is on
    const drawn = e.matches("svg text");
    const [a, b] = [light(drawn ? getComputedStyle(e).fill : getComputedStyle(e).color), light(shape ? getComputedStyle(shape).fill : ground(e))];
    const c = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (c < worst[0]) worst = [c, e.outerHTML.slice(0, 120)];
  }
  return worst[0] >= 4.5 ? "" : worst[0].toFixed(2) + " of " + worst[1];
})()`

// drawn are the troubles of the picture: letters that are too small, are cut off or cover
// each other, lines that can hardly be seen, and links past their limit that differ from
// others by their colour only.
const drawn = `(() => {
  const out = [], svg = document.querySelector("svg.fleet"), all = [...svg.querySelectorAll("text")];
  const frame = svg.getBoundingClientRect();
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = rgb(c).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  for (const t of all) {
    const size = parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a, r = t.getBoundingClientRect();
    if (size < 11) out.push(size.toFixed(1) + " px: " + t.textContent);
    if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1) out.push("cut off: " + t.textContent);
    for (const o of all) {
      const q = o.getBoundingClientRect(), slack = 4; // the rim of two words
      if (o !== t && r.left + slack < q.right && q.left + slack < r.right && r.top + slack < q.bottom && q.top + slack < r.bottom) out.push(t.textContent + " covers " + o.textContent);
    }
  }
  for (const g of svg.querySelectorAll("g.link")) {
    const line = getComputedStyle(g.querySelector("line")), l = light(line.stroke), over = g.classList.contains("over");
    const c = (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05);
    if (c < 3) out.push(g.dataset.key + ": a line with contrast " + c.toFixed(2));
    const mark = all.find((t) => t.dataset.key === "p-" + g.dataset.key), marked = Boolean(mark && mark.checkVisibility() && mark.textContent.startsWith("✕"));
    if (marked !== over) out.push(g.dataset.key + ": past its limit is " + over + ", a mark " + marked);
    if (over !== (parseFloat(line.strokeWidth) >= 3 && line.strokeDasharray !== "none")) out.push(g.dataset.key + ": past its limit is " + over + ", drawn " + line.strokeWidth + " wide, dashes " + line.strokeDasharray);
  }
  return out.join("; ");
})()`

// In light and in dark, on a phone and on a desk: it can be read, and nothing has to be
// scrolled sideways.
func TestLooks(t *testing.T) {
	fleets := map[string]pagetest.Fleet{
		"slow":    {Slow: "h3", Open: true},
		"standby": {Slow: "h5"}, // is past its limit to each voter
		"large":   {Voters: 7, Hosts: 12, Slow: "h4", Silent: "h9", Rename: strings.Repeat("long-name-", 6)},
		"no-etcd": {Error: strings.Repeat("context-deadline-exceeded-", 20)},
		"hostile": {Reason: pagetest.Hostile, Rename: pagetest.Hostile, Zone: pagetest.Hostile},
	}
	for name, f := range fleets {
		t.Run(name, func(t *testing.T) {
			_, server := made(t, f)
			first := "h2"
			if f.Rename != "" {
				first = f.Rename
			}
			b := open(t, server.URL, "/", phone())
			for _, path := range []string{"/", "/hosts/" + url.PathEscape(first), "/operations", "/operations/20260225t000000-1", "/events"} {
				b.do(chromedp.Navigate(server.URL + path))
				b.live()
				for _, isDark := range []bool{false, true} {
					b.do(dark(isDark))
					b.looks(path, isDark)
				}
				if path == "/" { // text gets its colours from the system then, a drawing does not
					b.do(forced())
					b.drawing("forced colours")
				}
			}
		})
	}
}

func (b *tab) looks(path string, isDark bool) {
	b.t.Helper()
	where := fmt.Sprintf("%.40s, dark %v", path, isDark)
	if w := js[int](b, `document.documentElement.scrollWidth`); w > 360 {
		b.t.Errorf("%s: %d wide on a phone of 360", where, w)
		b.picture("wide")
	}
	if worst := js[string](b, contrast); worst != "" {
		b.t.Errorf("%s: contrast %s", where, worst)
	}
	if ground := js[string](b, `getComputedStyle(document.body).backgroundColor`); (ground == "rgb(20, 23, 26)") != isDark {
		b.t.Errorf("%s: the ground is %s", where, ground)
	}
	if title := js[string](b, `document.title`); title == "owned" || !strings.Contains(title, "Suffrage") {
		b.t.Errorf("%s: the title is %q", where, title)
	}
	if n := js[int](b, `document.querySelectorAll("main script, main img, main iframe").length`); n > 0 {
		b.t.Errorf("%s: %d elements that nobody wrote", where, n)
	}
	if path == "/" {
		b.drawing(where)
		b.picture(fmt.Sprintf("phone-dark-%v", isDark))
	}
}

// drawing looks at the picture of the fleet.
func (b *tab) drawing(where string) {
	b.t.Helper()
	if troubles := js[string](b, drawn); troubles != "" {
		b.t.Errorf("%s: the picture: %s", where, troubles)
	}
	if strings.HasPrefix(where, "forced") {
		b.picture("phone-forced")
	}
}

// On a desk the picture is beside the hosts, and as narrow as that leaves it.
func TestDrawingOnADesk(t *testing.T) {
	_, server := made(t, pagetest.Fleet{Voters: 5, Hosts: 7, Slow: "h3"})
	for _, width := range []int64{1000, 1400} {
		b := open(t, server.URL, "/", chromedp.EmulateViewport(width, 900))
		b.live()
		b.drawing(fmt.Sprintf("%d wide", width))
		b.picture(fmt.Sprintf("desk-%d", width))
		b.do(forced())
		b.drawing("forced colours on a desk")
	}
}

// What a screen reader finds.
func TestLandmarks(t *testing.T) {
	_, server := made(t, pagetest.Fleet{Slow: "h3", Open: true})
	for _, path := range []string{"/", "/hosts/h3", "/operations", "/events"} {
		b := open(t, server.URL, path)
		b.live()
		for what, expression := range map[string]string{
			"one header, nav, main, footer and h1":         `["header", "nav", "main", "footer", "h1"].every((e) => document.querySelectorAll(e).length === 1)`,
			"a language":                                   `document.documentElement.lang === "en"`,
			"every section has a heading":                  `[...document.querySelectorAll("section")].every((s) => document.getElementById(s.getAttribute("aria-labelledby")))`,
			"no id is there twice":                         `(ids => new Set(ids).size === ids.length)([...document.querySelectorAll("[id]")].map((e) => e.id))`,
			"every column and row has a scope":             `[...document.querySelectorAll("th")].every((e) => e.scope)`,
			"every picture has words or is hidden":         `[...document.querySelectorAll("svg")].every((e) => e.closest("[aria-hidden=true]") || e.getAttribute("aria-label"))`,
			"every link has a name":                        `[...document.querySelectorAll("a")].every((e) => e.textContent.trim() || e.getAttribute("aria-label"))`,
			"every state has a shape and a word":           `[...document.querySelectorAll(".state")].every((e) => e.querySelector(".glyph").textContent && e.textContent.trim().length > 3)`,
			"the page that one is at is said, where it is": `document.querySelectorAll("[aria-current=page]").length === (location.pathname.startsWith("/hosts/") ? 0 : 1)`,
		} {
			if !js[bool](b, expression) {
				t.Errorf("%s: not so: %s", path, what)
			}
		}
	}
}

// owner does what is said, and keeps it.
type owner chan string

func (o owner) Ask(_ context.Context, q page.Order) (page.Question, error) {
	if q.Host == q.In {
		return page.Question{}, errors.New("two different hosts are needed")
	}
	return page.Question{Lines: []string{"this is what " + q.String() + " does"}, Key: q.String()}, nil
}

func (o owner) Do(_ context.Context, q page.Order, by, reason string) (string, error) {
	o <- q.String() + "|" + by + "|" + reason
	return "it is done", nil
}

// What the owner says: shown first, then confirmed, all by keys.
func TestOwner(t *testing.T) {
	s, said := &pagetest.Source{}, make(owner, 1)
	server := httptest.NewServer(page.New(page.Options{Source: s, History: &page.History{}, Host: "h1", Owner: said, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}))
	t.Cleanup(server.Close)
	b := open(t, server.URL, "/hosts/h3")
	b.live()
	js[bool](b, `document.querySelector('a[href="/owner?verb=pin&host=h3"]').focus(); true`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("h1", "pin h3?")
	b.until(".what", "this is what pin h3 does")
	b.picture("asked")
	js[bool](b, `document.querySelector("input[name=by]").focus(); true`)
	b.do(chromedp.KeyEvent("anna"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("new disk"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	b.until("main", "it is done")
	if got := <-said; !strings.HasPrefix(got, "pin h3|anna, through the page on h1 from 127.0.0.1:") || !strings.HasSuffix(got, "|new disk") {
		t.Errorf("said: %q", got)
	}
	// A swap, from the two lists of the first page.
	b.do(chromedp.Navigate(server.URL + "/"))
	b.live()
	js[bool](b, `document.querySelector("select[name=host]").value = "h3"; document.querySelector("select[name=in]").value = "h5"; true`)
	b.picture("say")
	js[bool](b, `document.querySelector("form.says button").focus(); true`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(".what", "this is what swap h3 h5 does")
	// Another site's page cannot.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<link rel="icon" href="data:,"><form method="post" action="%s/owner"><input name="verb" value="pause"><button>x</button></form>`, server.URL)
	}))
	t.Cleanup(other.Close)
	b.ours = append(b.ours, other.URL)
	b.do(chromedp.Navigate(other.URL))
	js[bool](b, `document.querySelector("button").click(); true`)
	b.until("body", "cross-origin request")
	select {
	case got := <-said:
		t.Errorf("it was taken: %q", got)
	default:
	}
}

// Without its script the page says the same, and is loaded again by itself.
func TestWithoutScript(t *testing.T) {
	s, server := made(t, pagetest.Fleet{})
	b := open(t, server.URL, "/", scriptless())
	b.until("#live-word", "looked ")
	s.Set(pagetest.Fleet{Slow: "h3"})
	b.until(`tr[data-key="h-h3"]`, "✕ unfit")
}
