package grafana

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the dashboards anew")

// The files are what Pages says; go test ./deploy/grafana -rewrite writes them.
func TestFilesAreWhatPagesSay(t *testing.T) {
	pages := Pages()
	files, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := pages[f]; !ok {
			t.Errorf("%s is no page", f)
		}
	}
	for name, page := range pages {
		want, err := page.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if *rewrite {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code says (%v): go test ./deploy/grafana -rewrite", name, err)
		}
	}
}

var metricName = regexp.MustCompile(`\b(suffrage|etcd|process)_[a-z0-9_]+\b`)

func TestPanels(t *testing.T) {
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(Pages())) {
		page := Pages()[name]
		if uids[page.UID] || page.UID == "" || page.Title == "" || page.Description == "" {
			t.Errorf("%s: UID %q, title and description have to be there, and the UID once", name, page.UID)
		}
		uids[page.UID] = true
		titles := map[string]bool{}
		for _, p := range page.Panels {
			if titles[p.Title] || p.Title == "" || p.Description == "" || p.Unit == "" || len(p.Queries) == 0 {
				t.Errorf("%s, %q: title (once), description, unit and queries have to be there", name, p.Title)
			}
			titles[p.Title] = true
			if p.Width > 24 {
				t.Errorf("%s, %q is %d columns wide; there are 24", name, p.Title, p.Width)
			}
			for _, w := range p.Words {
				if w.Text == "" {
					t.Errorf("%s, %q has a colour without a word", name, p.Title)
				}
			}
			for _, q := range p.Queries {
				if !page.PerHost && strings.Contains(q.Expr, "$host") {
					t.Errorf("%s, %q asks for $host, which the page does not have", name, p.Title)
				}
				for _, m := range metricName.FindAllString(q.Expr, -1) {
					if m = strings.TrimSuffix(m, "_bucket"); strings.HasPrefix(m, "suffrage_") && !strings.Contains(string(docs), "| `"+m+"` |") {
						t.Errorf("%s, %q asks for %s, which docs/metrics.md does not have", name, p.Title, m)
					}
				}
			}
		}
	}
}

// No panel lies over another.
func TestPanelsDoNotOverlap(t *testing.T) {
	for name, page := range Pages() {
		b, err := page.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Panels []struct {
				Title string
				At    struct{ X, Y, W, H int } `json:"gridPos"`
			}
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		taken := map[[2]int]string{}
		for _, p := range got.Panels {
			for x := p.At.X; x < p.At.X+p.At.W; x++ {
				for y := p.At.Y; y < p.At.Y+p.At.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q at %d,%d lies over %q or beyond the edge", name, p.Title, x, y, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
