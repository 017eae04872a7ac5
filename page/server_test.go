package page_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"suffrage/page"
	"suffrage/page/pagetest"
)

func handler(f pagetest.Fleet) (http.Handler, *pagetest.Source) {
	s := &pagetest.Source{}
	s.Set(f)
	return page.New(page.Options{Source: s, History: &page.History{}, Host: "h1", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}), s
}

func get(h http.Handler, method, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:7403"+path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAnswers(t *testing.T) {
	h, _ := handler(pagetest.Fleet{Slow: "h3"})
	for _, c := range []struct {
		method, host, path string
		code               int
		says               string
	}{
		{"GET", "127.0.0.1:7403", "/", 200, "Would swap h3 → h4"},
		{"HEAD", "127.0.0.1:7403", "/", 200, ""},
		{"GET", "localhost:9000", "/", 200, ""},         // through ssh -L, at another port
		{"GET", "[::1]:7403", "/operations", 200, ""},   // brackets
		{"GET", "100.64.0.1", "/events", 200, ""},       // the mesh address
		{"GET", "H1:7403", "/hosts/h3", 200, "unfit"},   // its own name
		{"GET", "evil.example:7403", "/", 421, ""},      // DNS rebinding
		{"GET", "127.0.0.1.evil.example", "/", 421, ""}, // looks like an address
		{"GET", "localhost.evil.example", "/v1/fleet", 421, ""},
		{"GET", "", "/", 421, ""},
		{"GET", "127.0.0.1:7403", "/hosts/nobody", 404, "The roster has no host of that name"},
		{"GET", "127.0.0.1:7403", "/operations/none", 404, "No operation of that ID"},
		{"GET", "127.0.0.1:7403", "/operations/20260225t000000-1", 200, "h4 was fit and is not any more"},
		{"GET", "127.0.0.1:7403", "/nothing", 404, ""},
		{"GET", "127.0.0.1:7403", "/v1/hosts/nobody", 404, ""},
		{"GET", "127.0.0.1:7403", "/static/page.js", 200, "use strict"},
		{"GET", "127.0.0.1:7403", "/static/page.css", 200, "prefers-color-scheme"},
		{"GET", "127.0.0.1:7403", "/favicon.ico", 200, "<svg"},
		{"GET", "127.0.0.1:7403", "/html/page.html", 404, ""},
		{"POST", "127.0.0.1:7403", "/", 405, "only GET, HEAD"},
		{"PUT", "127.0.0.1:7403", "/v1/fleet", 405, ""},
		{"DELETE", "127.0.0.1:7403", "/hosts/h3", 405, ""},
		{"OPTIONS", "127.0.0.1:7403", "/", 405, ""},
	} {
		w := get(h, c.method, c.host, c.path)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s at %q: %d, want %d with %q:\n%.300s", c.method, c.path, c.host, w.Code, c.code, c.says, w.Body)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s: %q, want %q", c.method, c.path, name, got, want)
			}
		}
		if p := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none';") || strings.Contains(p, "unsafe") || strings.Contains(p, "*") {
			t.Errorf("%s %s: the policy is %q", c.method, c.path, p)
		}
	}
}

// A voter that does not answer is named where one looks first.
func TestSilentVoter(t *testing.T) {
	h, _ := handler(pagetest.Fleet{Down: "h3"})
	body := get(h, "GET", "localhost", "/").Body.String()
	for _, want := range []string{"h3 does not answer: losing one more may stop all writes.", "<b>Its etcd does not answer:</b> no answer within 2s", "its etcd does not answer", "<code>"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not there:\n%s", want, body)
		}
	}
}

func TestSteppedDown(t *testing.T) {
	h, _ := handler(pagetest.Fleet{Stepped: "h3"})
	for path, want := range map[string]string{"/": "<td data-label=\"Role\">voter, etcd-only", "/hosts/h3": "<p class=\"lead\">voter, etcd-only,", "/v1/fleet": `"grade":"etcd-only"`} {
		if body := get(h, "GET", "localhost", path).Body.String(); strings.Count(strings.ReplaceAll(body, `": "`, `":"`), want) != 1 {
			t.Errorf("%s: not once %q:\n%s", path, want, body)
		}
	}
}

// What the fleet says is text wherever it stands.
func TestHostileText(t *testing.T) {
	h, s := handler(pagetest.Fleet{Reason: pagetest.Hostile, Zone: pagetest.Hostile, Error: pagetest.Hostile})
	for _, path := range []string{"/", "/hosts/h1", "/events"} {
		inert(t, path, get(h, "GET", "localhost", path))
	}
	s.Set(pagetest.Fleet{Reason: pagetest.Hostile, Rename: pagetest.Hostile})
	for _, path := range []string{"/", "/hosts/" + url.PathEscape(pagetest.Hostile), "/hosts/h2"} {
		inert(t, path, get(h, "GET", "localhost", path))
	}
	s.Fail(errors.New(pagetest.Hostile))
	w := get(h, "GET", "localhost", "/")
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a look that failed: %d", w.Code)
	}
	inert(t, "a look that failed", w)
}

// inert wants only elements and attributes that the templates have.
func inert(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	body := w.Body.String()
	if !strings.Contains(html.UnescapeString(body), pagetest.Hostile) {
		t.Errorf("%s does not show the text at all", what)
	}
	z := html.NewTokenizer(strings.NewReader(body))
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		tok := z.Token()
		if tok.Type != html.StartTagToken && tok.Type != html.SelfClosingTagToken {
			continue
		}
		if tok.Data == "img" || tok.Data == "iframe" || tok.Data == "style" {
			t.Errorf("%s has an element %v", what, tok)
		}
		for _, a := range tok.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style":
				t.Errorf("%s has an attribute %s on %s", what, a.Key, tok.Data)
			case (a.Key == "href" || a.Key == "src") && !strings.HasPrefix(a.Val, "/") && a.Val != "#main":
				t.Errorf("%s leads to %q", what, a.Val)
			case a.Key == "src" && a.Val != "/static/page.js":
				t.Errorf("%s loads %q", what, a.Val)
			}
		}
	}
}

// The same value is the page and the JSON, and the JSON can be read again.
func TestJSON(t *testing.T) {
	h, s := handler(pagetest.Fleet{Slow: "h3", Open: true})
	var m page.Model
	w := get(h, "GET", "localhost", "/v1/fleet")
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatal(err, w.Header())
	}
	if m.Version != page.ModelVersion || len(m.Hosts) != 5 || len(m.Links) != 9 || m.Quorum.State != page.QuorumEdge || m.Operations[0].Ended.IsZero() == false || m.Hosts[1].Role != "leader" {
		t.Errorf("%+v", m)
	}
	var one page.HostModel
	if err := json.Unmarshal(get(h, "GET", "localhost", "/v1/hosts/h3").Body.Bytes(), &one); err != nil || len(one.Windows) != 12 || len(one.Windows[0].Samples) != 100 {
		t.Errorf("%v, %d windows", err, len(one.Windows))
	}
	s.Late(time.Hour)
	w = get(h, "GET", "localhost", "/v1/fleet")
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || m.AgeSeconds < 3600 {
		t.Errorf("an old look is %v s old, %v", m.AgeSeconds, err)
	}
	if null := regexp.MustCompile(`"(hosts|links|operations|events|windows|samples|worst)": null`).FindString(w.Body.String()); null != "" {
		t.Errorf("a list is null: %s", null)
	}
}
