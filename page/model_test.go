package page_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/page"
	"suffrage/page/pagetest"
)

func model(f pagetest.Fleet) page.Model {
	now := time.Now().UTC()
	return page.Of(f.Look(now), "h1", nil, now)
}

func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		name  string
		fleet pagetest.Fleet
		state string
		says  string
	}{
		{"all well", pagetest.Fleet{}, page.QuorumSafe, "Can lose 1 more"},
		{"a slow voter is not counted on", pagetest.Fleet{Slow: "h3"}, page.QuorumEdge, "2 of 3 are fit"},
		{"of five two may go, one of them already", pagetest.Fleet{Voters: 5, Hosts: 6, Slow: "h3"}, page.QuorumSafe, "Can lose 1 more"},
		{"one voter", pagetest.Fleet{Voters: 1}, page.QuorumEdge, "losing one stops all writes"},
		{"a voter's agent is silent: nobody judges it", pagetest.Fleet{Silent: "h2"}, page.QuorumSafe, ""},
		{"a voter is silent", pagetest.Fleet{Down: "h3"}, page.QuorumEdge, "h3 does not answer"},
		{"no quorum", pagetest.Fleet{Error: "context deadline exceeded"}, page.QuorumLost, "1 of 3 voters answer, 2 are needed"},
	} {
		q := model(c.fleet).Quorum
		if q.State != c.state || !strings.Contains(q.Text, c.says) {
			t.Errorf("%s: %+v, want %s, %q", c.name, q, c.state, c.says)
		}
	}
}

func TestLinks(t *testing.T) {
	m := model(pagetest.Fleet{Slow: "h3"})
	bands := map[string]fitness.Band{}
	for _, l := range m.Links {
		bands[l.A+l.B] = l.Band
		if l.P99 == nil || l.There == nil || l.Back == nil || *l.P99 != max(*l.There, *l.Back) || l.A >= l.B {
			t.Errorf("%+v", l)
		}
	}
	for pair, want := range map[string]fitness.Band{"h1h2": fitness.Under, "h1h3": fitness.Over, "h3h4": fitness.Over, "h1h4": fitness.Under} {
		if bands[pair] != want {
			t.Errorf("%s: %q, want %q", pair, bands[pair], want)
		}
	}
	if _, there := bands["h4h5"]; there {
		t.Error("two standbys have a link")
	}
}

// History keeps what changed, once, and is bounded.
func TestHistory(t *testing.T) {
	h := &page.History{}
	at := time.Now()
	take := func(status fitness.Status, kind membership.Kind) {
		at = at.Add(time.Second)
		d := membership.Decision{At: at, Kind: kind, Verdicts: []fitness.Verdict{{Host: "h3", Status: status}}}
		h.Take(d)
		d.At = at.Add(-time.Minute)
		d.Kind = "older"
		h.Take(d) // a look that was overtaken
	}
	take(fitness.StatusUnknown, membership.Refused)
	take(fitness.Fit, membership.Steady)
	take(fitness.Fit, membership.Steady)
	take(fitness.Unfit, membership.Steady)
	var got []string
	for _, e := range h.Seen() {
		got = append(got, e.Kind+" "+e.Host+" "+e.Text)
	}
	want := "decision  Nothing is done: |verdict h3 was unknown, is fit|decision  Nothing needs doing|verdict h3 was fit, is unfit"
	if strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
	for i := range 1000 {
		take([]fitness.Status{fitness.Fit, fitness.Unfit}[i%2], membership.Steady)
	}
	if n := len(h.Seen()); n != 300 {
		t.Errorf("%d events are kept", n)
	}
}

// Samples without a number, and those that were lost, are told apart in the picture.
func TestHostWindows(t *testing.T) {
	now := time.Now().UTC()
	l := pagetest.Fleet{}.Look(now)
	series := l.Series
	l.Series = func(host string) []fitness.Series {
		all := series(host)
		for i := range all[0].Samples {
			switch s := &all[0].Samples[i]; {
			case i == fitness.SeriesSize-1:
				s.State = fitness.Lost
			case i == fitness.SeriesSize-2:
				s.State = fitness.Failed
			}
		}
		return all
	}
	m, err := page.HostOf(l, "h1", now)
	if err != nil || m.Windows[0].Reading.Peer != "h2" {
		t.Fatal(err, m.Windows)
	}
	s := m.Windows[0].Samples
	if len(s) != 100 || !math.IsInf(float64(*s[99]), 1) || s[98] != nil || s[97] == nil {
		t.Errorf("%v", s[95:])
	}
	if _, err := page.HostOf(l, "h9", now); err == nil {
		t.Error("h9 is in no roster")
	}
}
