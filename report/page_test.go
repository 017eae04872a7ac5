package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"suffrage/membership"
)

var keep = flag.String("page", "", "also write the page of the made-up month to this file")

// monthReport is of the first days of the made-up month.
var monthReport = sync.OnceValue(func() Report {
	const days = 17
	var file bytes.Buffer
	played(&file, days)
	p := New(noon.AddDate(0, 0, -1), noon.AddDate(0, 0, days-1))
	for m, err := range Lines("month", &file) {
		if err != nil {
			panic(err)
		}
		p.Add(m)
	}
	return p.Report()
})

// Every picture is well formed and says in words what it shows.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	r := monthReport()
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	if *keep != "" {
		if err := os.WriteFile(*keep, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page := b.String()
	if n := b.Len(); n > 2<<20 {
		t.Errorf("the page has %d bytes: nobody mails that", n)
	}
	pictures := 0
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %.300s", err, svg)
			}
		}
		if strings.Contains(svg, `role="img"`) {
			pictures++
			if !regexp.MustCompile(`aria-labelledby="(\w+) (\w+)"><title id="\w+">[^<]+</title><desc id="\w+">[^<]+</desc>`).MatchString(svg) {
				t.Errorf("a picture without words: %.200s", svg)
			}
		}
	}
	if want := 2 + min(maxCharts, len(r.Series)); pictures != want {
		t.Errorf("%d pictures, want %d", pictures, want)
	}
	for _, never := range []string{"<script", "http://", "https://", "NaN", "ZgotmplZ", "@import", "src="} {
		if strings.Contains(page, never) {
			t.Errorf("the page holds %q", never)
		}
	}
	for _, want := range []string{"swap h3 → h4", "no-candidate", "voter-down", "h1–h3", "How this is reckoned", "prefers-color-scheme: dark", "@media print"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	ids := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[id[1]] {
			t.Errorf("two elements are called %q", id[1])
		}
		ids[id[1]] = true
	}
}

// Names come from files that other hosts wrote.
func TestNothingOfATimelineIsMarkup(t *testing.T) {
	const evil = `"><img src=x onerror=alert(1)>'&</title>`
	bad := func(m *membership.Moment) {
		plan(m)
		m.Out, m.In, m.Operation, m.Mode = evil, evil, evil, evil
		m.Hosts[0].Host, m.Hosts[1].Mark, m.Hosts[2].Reasons = evil, evil, []string{evil}
		m.Refusals = []membership.MomentRefusal{{Code: evil, Kind: evil, Subject: evil}}
		m.Voters, m.Leader = []string{evil}, evil
		m.Figures["rtt a"+evil+" b"] = membership.Reach{1, 1}
		m.Figures[`wal_fsync "><b>`] = membership.Reach{1, 1}
	}
	var b bytes.Buffer
	if err := reportOf(0, 2*minute, moment(0, bad), moment(minute, bad), moment(2*minute)).HTML(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<img") || strings.Contains(b.String(), `"><b>`) {
		t.Error("a name became markup")
	}
}

// The JSON form is read by people's scripts: it says what Go's form says.
func TestJSONForm(t *testing.T) {
	r := monthReport()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(back); !bytes.Equal(again, data) {
		t.Error("read back it is another")
	}
}

// Every key stands in docs/report.md.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(monthReport())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"([a-z_0-9]+)":`).FindAllStringSubmatch(string(data), -1) {
		if !bytes.Contains(page, []byte("`"+m[1]+"`")) && !bytes.Contains(page, []byte("."+m[1]+"`")) {
			t.Errorf("docs/report.md does not have `%s`", m[1])
		}
	}
}
