package page_test

import (
	"math"
	"strings"
	"testing"

	"suffrage/fitness"
	"suffrage/page"
	"suffrage/page/pagetest"
)

// Every p99 is in the picture or in the list below it, nothing covers anything, and a
// link that is past its limit has a mark whatever there is room for.
func TestPicture(t *testing.T) {
	for name, c := range map[string]struct {
		fleet pagetest.Fleet
		all   bool // every p99 has room
	}{
		"three voters":       {pagetest.Fleet{}, true},
		"one is slow":        {pagetest.Fleet{Slow: "h3"}, true},
		"a standby is slow":  {pagetest.Fleet{Slow: "h4"}, true},
		"a long name":        {pagetest.Fleet{Rename: strings.Repeat("wide-name-", 6), Slow: "h5"}, true},
		"one voter":          {pagetest.Fleet{Voters: 1}, false},
		"five voters":        {pagetest.Fleet{Voters: 5, Hosts: 7, Slow: "h7"}, false},
		"four standbys":      {pagetest.Fleet{Hosts: 7}, false},
		"a large fleet":      {pagetest.Fleet{Voters: 7, Hosts: 12, Slow: "h9"}, false},
		"only voters":        {pagetest.Fleet{Voters: 9, Hosts: 9, Slow: "h1"}, false},
		"many standbys":      {pagetest.Fleet{Hosts: 14, Slow: "h2"}, false},
		"no window is known": {pagetest.Fleet{Silent: "h3"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := model(c.fleet)
			p := page.PictureOf(m)
			type box struct {
				what             string
				x, y, half, high float64
			}
			var boxes []box
			word := func(what, text string, x, y, letter float64) {
				b := box{what, x, y - 4, float64(len([]rune(text))) * letter / 2, 7}
				if b.x-b.half < 0 || b.x+b.half > float64(p.Width) || y > float64(p.Height) || y < 10 {
					t.Errorf("%s is cut off: %+v", what, b)
				}
				boxes = append(boxes, b)
			}
			for _, n := range p.Nodes {
				boxes = append(boxes, box{n.Name, n.X, n.Y, 17, 17})
				word("the name of "+n.Name, n.Label, n.LabelX, n.Y+34, 7.2)
			}
			labelled, listed := map[string]string{}, map[string]bool{}
			for _, l := range p.Lines {
				labelled[l.A+"-"+l.B] = l.Label
				if l.Label != "" && l.Label != "✕" {
					word("the label of "+l.A+"-"+l.B, l.Label, l.LabelX, l.LabelY, 7.2)
				}
			}
			for _, l := range p.Rest {
				listed[l.A+"-"+l.B] = true
			}
			for i, a := range boxes {
				for _, b := range boxes[:i] {
					if math.Abs(a.x-b.x) < a.half+b.half && math.Abs(a.y-b.y) < a.high+b.high {
						t.Errorf("%s covers %s", a.what, b.what)
					}
				}
			}
			for _, l := range m.Links {
				key := l.A + "-" + l.B
				if l.P99 != nil && strings.Contains(labelled[key], l.Text()) == listed[key] {
					t.Errorf("%s: the p99 %s is labelled %q, listed %v", key, l.Text(), labelled[key], listed[key])
				}
				if l.Band == fitness.Over && !strings.HasPrefix(labelled[key], "✕") {
					t.Errorf("%s is past its limit, and has no mark but %q", key, labelled[key])
				}
				if l.Band == fitness.Under && strings.Contains(labelled[key], "✕") {
					t.Errorf("%s is within its limit, and marked %q", key, labelled[key])
				}
			}
			if c.all && len(p.Rest) > 0 {
				t.Errorf("%d links of %d have no room: %+v", len(p.Rest), len(p.Lines), p.Rest)
			}
			t.Logf("%d links, %d without room", len(p.Lines), len(p.Rest))
		})
	}
}
