package page_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"suffrage/page"
	"suffrage/page/pagetest"
)

// owner does what is asked for, and keeps it.
type owner struct {
	key  string
	not  error
	err  error
	done []string
}

func (o *owner) Ask(_ context.Context, q page.Order) (page.Question, error) {
	return page.Question{Lines: []string{q.String() + " does this"}, Key: o.key, Not: o.not}, o.err
}

func (o *owner) Do(_ context.Context, q page.Order, by, reason string) (string, error) {
	o.done = append(o.done, q.String()+"|"+by+"|"+reason)
	return "it is " + q.Verb, nil
}

func writing(o *owner) http.Handler {
	return page.New(page.Options{Source: &pagetest.Source{}, History: &page.History{}, Host: "h1", Owner: o, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

var sealed = regexp.MustCompile(`name="seal" value="([^"]+)"`)

// shownFor is the form that is shown for an order, filled in.
func shownFor(t *testing.T, h http.Handler, query string) url.Values {
	t.Helper()
	w := get(h, "GET", "localhost", "/owner?"+query)
	m := sealed.FindStringSubmatch(w.Body.String())
	if w.Code != 200 || m == nil || !strings.Contains(w.Body.String(), " does this") {
		t.Fatalf("%s: %d\n%s", query, w.Code, w.Body)
	}
	v, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	v.Set("seal", m[1])
	v.Set("by", "anna")
	v.Set("reason", "why not")
	return v
}

func send(h http.Handler, v url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://localhost:7403/owner", strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://localhost:7403")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Without the setting there is nothing that could be said.
func TestReadOnly(t *testing.T) {
	h, _ := handler(pagetest.Fleet{})
	if w := get(h, "GET", "localhost", "/owner?verb=pin&host=h3"); w.Code != 404 {
		t.Errorf("GET /owner: %d", w.Code)
	}
	if w := send(h, url.Values{"verb": {"pin"}}, nil); w.Code != 405 {
		t.Errorf("POST /owner: %d", w.Code)
	}
	for _, path := range []string{"/", "/hosts/h3"} {
		w := get(h, "GET", "localhost", path)
		if strings.Contains(w.Body.String(), "/owner") || !strings.Contains(w.Header().Get("Content-Security-Policy"), "form-action 'none'") {
			t.Errorf("%s leads to what does not exist", path)
		}
	}
}

func TestOwnersWord(t *testing.T) {
	o := &owner{key: "a"}
	h := writing(o)
	v := shownFor(t, h, "verb=swap&host=h3&in=h4")
	w := send(h, v, nil)
	if w.Code != 200 || !strings.Contains(w.Body.String(), "it is swap") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if want := "swap h3 h4|anna, through the page on h1 from 192.0.2.1:1234|why not"; len(o.done) != 1 || o.done[0] != want {
		t.Errorf("%q, want %q", o.done, want)
	}
}

func TestRefusesWhatWasNotShown(t *testing.T) {
	o := &owner{key: "a"}
	h := writing(o)
	with := func(key, value string) func(url.Values) { return func(v url.Values) { v.Set(key, value) } }
	header := func(key, value string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(key, value) } }
	for _, c := range []struct {
		name   string
		form   func(url.Values)
		change func(*http.Request)
		code   int
	}{
		{"another site's form", nil, header("Sec-Fetch-Site", "cross-site"), 403},
		{"another port's of the same site", nil, header("Sec-Fetch-Site", "same-site"), 403},
		{"another origin, in a browser that says no more", nil, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://evil.example")
		}, 403},
		{"a browser that says nothing, and no seal", with("seal", ""), func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Del("Origin")
		}, 409},
		{"a name that leads here", nil, func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") }, 421},
		{"a seal of another order", with("host", "h2"), nil, 409},
		{"a seal of another process", with("seal", shownFor(t, writing(&owner{key: "a"}), "verb=pin&host=h3").Get("seal")), nil, 409},
		{"a seal that is none", with("seal", "99999999999.x"), nil, 409},
		{"nobody says it", with("by", ""), nil, 400},
		{"a name without end", with("by", strings.Repeat("a", 101)), nil, 400},
		{"a verb that nobody has", with("verb", "reset"), nil, 400},
		{"a form without end", with("reason", strings.Repeat("a", 1<<20)), nil, 400},
		{"another method", nil, func(r *http.Request) { r.Method = "PUT" }, 405},
	} {
		v := shownFor(t, h, "verb=pin&host=h3")
		if c.form != nil {
			c.form(v)
		}
		if w := send(h, v, c.change); w.Code != c.code || len(o.done) > 0 {
			t.Errorf("%s: %d, want %d; done: %q", c.name, w.Code, c.code, o.done)
		}
	}

	// What would be done changes between the question and the answer.
	v := shownFor(t, h, "verb=pin&host=h3")
	o.key = "b"
	w := send(h, v, nil)
	if w.Code != 409 || len(o.done) > 0 || !strings.Contains(w.Body.String(), "not what would be done now") {
		t.Errorf("%d, %q", w.Code, o.done)
	}
	v.Set("seal", sealed.FindStringSubmatch(w.Body.String())[1])
	if w := send(h, v, nil); w.Code != 200 || len(o.done) != 1 {
		t.Errorf("once it was seen: %d, %q", w.Code, o.done)
	}

	// What it would do is shown although it cannot be done now, without a form.
	o.not, o.done = errors.New("the mode is dry-run"), nil
	w = get(h, "GET", "localhost", "/owner?verb=pin&host=h3")
	if body := w.Body.String(); w.Code != 200 || sealed.MatchString(body) || strings.Contains(body, "<form") || !strings.Contains(body, "pin h3 does this") || !strings.Contains(body, "the mode is dry-run") {
		t.Errorf("what cannot be done: %d\n%s", w.Code, body)
	}
	if w := send(h, v, nil); w.Code != 409 || len(o.done) > 0 || !strings.Contains(w.Body.String(), "the mode is dry-run") {
		t.Errorf("what cannot be done is done: %d, %q", w.Code, o.done)
	}

	// Why nothing would be done is said, without a form.
	o.err = errors.New("refused: " + pagetest.Hostile)
	w = get(h, "GET", "localhost", "/owner?verb=pin&host=h3")
	if w.Code != 409 || sealed.MatchString(w.Body.String()) {
		t.Errorf("a refusal: %d", w.Code)
	}
	inert(t, "a refusal", w)
}
