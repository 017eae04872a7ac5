package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Options are what a page is made of.
type Options struct {
	Source  Source
	History *History
	// Host is the one whose controller serves.
	Host string
	// Owner carries out what is said through the page; nil: it changes nothing.
	Owner Owner
	Log   *slog.Logger
}

type server struct {
	Options
	pages *template.Template
	seal  seal
}

//go:embed html/*.html
var pages embed.FS

//go:embed static
var static embed.FS

var words = template.FuncMap{
	"ago":      ago,
	"seconds":  func(s float64) string { return length(time.Duration(s * float64(time.Second))) },
	"glyph":    glyph,
	"lasting":  lasting,
	"stood":    stood,
	"quoted":   quoted,
	"band":     band,
	"figure":   func(f fitness.Figure, unit string) string { return f.Text(unit) },
	"known":    figure,
	"headline": Headline,
	"path":     url.PathEscape,
	"stamp":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"clock":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"micro":    time.UnixMicro,
	"size":     size,
	"chart":    chartOf,
	"picture":  pictureOf,
	"timeline": timelineOf,
	"outcome":  outcome,
	"whole":    func() int { return fitness.Whole },
	"kind":     kind,
	"list":     func(v ...any) []any { return v },
	"add":      func(a, b float64) float64 { return a + b },
	"first": func(n int, list []Event) []Event {
		return list[:min(n, len(list))]
	},
}

// New makes the handler of the page.
func New(o Options) http.Handler {
	s := &server{o, template.Must(template.New("").Funcs(words).ParseFS(pages, "html/*.html")), newSeal()}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(static))
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { // of errors, which are no pages
		http.ServeFileFS(w, r, static, "static/icon.svg")
	})
	mux.HandleFunc("GET /{$}", s.fleet("fleet"))
	mux.HandleFunc("GET /operations", s.fleet("operations"))
	mux.HandleFunc("GET /operations/{id}", s.operation)
	mux.HandleFunc("GET /events", s.fleet("events"))
	mux.HandleFunc("GET /hosts/{host}", s.host)
	mux.HandleFunc("GET /v1/fleet", s.fleetJSON)
	mux.HandleFunc("GET /v1/hosts/{host}", s.hostJSON)
	if o.Owner != nil {
		mux.HandleFunc("GET /owner", s.ask)
		// Another site's page must not send the form; the seal is for browsers that do not
		// say where a request comes from.
		mux.Handle("POST /owner", http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.do)))
	}
	return guarded(o.Host, o.Owner != nil, mux)
}

// shown is what a template gets.
type shown struct {
	Model
	Page  string
	Title string
	// One host, one operation, or why there is nothing, where the page is of that.
	One   *HostModel
	Op    *membership.Operation
	Ask   *asking
	Error string
	// Writes: what the owner says is taken.
	Writes bool
}

// Now is when this was served.
func (s shown) Now() time.Time { return s.now }

// Current reports whether it is this page.
func (s shown) Current(page string) bool { return s.Page == page }

func (s *server) look(w http.ResponseWriter, r *http.Request) (Look, Model, bool) {
	l, err := s.Source.Look(r.Context())
	if err != nil {
		s.render(w, http.StatusServiceUnavailable, shown{Model: Model{Host: s.Host, now: time.Now()}, Page: "error", Title: "no look", Error: err.Error()})
		return l, Model{}, false
	}
	return l, Of(l, s.Host, s.History.Seen(), time.Now()), true
}

func (s *server) fleet(page string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, m, ok := s.look(w, r); ok {
			s.render(w, http.StatusOK, shown{Model: m, Page: page, Title: page})
		}
	}
}

func (s *server) host(w http.ResponseWriter, r *http.Request) {
	l, m, ok := s.look(w, r)
	if !ok {
		return
	}
	one, err := HostOf(l, r.PathValue("host"), m.now)
	if err != nil {
		s.render(w, http.StatusNotFound, shown{Model: m, Page: "error", Title: "no such host", Error: "The roster has no host of that name."})
		return
	}
	s.render(w, http.StatusOK, shown{Model: m, Page: "host", Title: one.Host.Name, One: &one})
}

func (s *server) operation(w http.ResponseWriter, r *http.Request) {
	_, m, ok := s.look(w, r)
	if !ok {
		return
	}
	for _, op := range m.Operations {
		if op.ID == r.PathValue("id") {
			s.render(w, http.StatusOK, shown{Model: m, Page: "operation", Title: op.Title(), Op: &op})
			return
		}
	}
	s.render(w, http.StatusNotFound, shown{Model: m, Page: "error", Title: "no such operation", Error: "No operation of that ID is kept."})
}

func (s *server) fleetJSON(w http.ResponseWriter, r *http.Request) {
	l, err := s.Source.Look(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.json(w, Of(l, s.Host, s.History.Seen(), time.Now()))
}

func (s *server) hostJSON(w http.ResponseWriter, r *http.Request) {
	l, err := s.Source.Look(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	m, err := HostOf(l, r.PathValue("host"), time.Now())
	if errors.Is(err, errNoHost) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	s.json(w, m)
}

func (s *server) json(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		s.Log.Error("the page's JSON could not be made", "err", err)
		http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // a reader that went away is its own loss
}

// render makes the whole answer before the first byte of it: half a page is none.
func (s *server) render(w http.ResponseWriter, code int, v shown) {
	var b bytes.Buffer
	v.Writes = s.Owner != nil
	if err := s.pages.ExecuteTemplate(&b, "page", v); err != nil {
		s.Log.Error("the page could not be made", "err", err)
		http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = b.WriteTo(w)
}

// kind says who lifts a refusal.
func kind(k membership.RefusalKind) string {
	switch k {
	case membership.Owner:
		return "waits for you"
	case membership.Hold:
		return "lifts by itself"
	}
	return "refused"
}
