package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/page/pagetest"
)

// Four looks at a fleet: h4's agent is away in the second and third, and a path of h2 is
// relayed in the last, on which its round trip to h1 is the longest of all.
func TestQualifying(t *testing.T) {
	var told strings.Builder
	q := &qualifying{tell: &told, asked: []string{"h2", "h4"}}
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for i := range 4 {
		in := pagetest.Fleet{}.Look(at.Add(time.Duration(i) * 5 * time.Second)).Inputs
		for j := range in.View.Hosts {
			switch h := &in.View.Hosts[j]; {
			case h.Name == "h4" && (i == 1 || i == 2):
				h.Reachable, h.Error = false, "no answer"
			case h.Name == "h2" && i == 3:
				h.Facts.Paths = []fitness.Path{{Peer: "h1", Kind: "relayed"}}
			}
		}
		for j := range in.Readings {
			if r := &in.Readings[j]; i == 3 && r.Signal == fitness.RTT && r.Host == "h2" && r.Peer == "h1" {
				r.Figure = 0.042
			}
		}
		q.add(in)
	}
	if len(q.hosts) != 2 {
		t.Fatalf("%d hosts", len(q.hosts))
	}
	h2, h4 := q.hosts[0], q.hosts[1]
	if h2.Looks != 4 || h2.Qualified != 4 || h2.Relayed != 1 || h2.Longest != 0 || h2.Worst == nil || h2.Worst.P99 != 0.042 || h2.Worst.Peer != "h1" {
		t.Errorf("h2: %+v, %+v", h2, h2.Worst)
	}
	if h4.Looks != 4 || h4.Qualified != 2 || h4.Relayed != 0 || h4.Longest != 5 || !h4.Qualifies || h4.Refusal != nil {
		t.Errorf("h4: %+v", h4)
	}
	lines := strings.Split(strings.TrimSpace(told.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "h4 does not qualify: no-candidate(h4): cannot get a vote: its agent does not answer") || !strings.HasSuffix(lines[1], "h4 qualifies") {
		t.Errorf("told %q", lines)
	}
	var out strings.Builder
	q.print(&out, true)
	for _, want := range []string{
		"HOST  ROLE     MARK      NOW  TIME   LONGEST NOT  WORST RTT   RELAYED\n",
		"h2    leader   eligible  yes  100 %  -            42.0 ms h1  25 %\n",
		"h4    standby  eligible  yes  50 %   5s           3.00 ms h3  never\n",
		"\n2 of 2 qualify\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it prints\n%swithout\n%s", out.String(), want)
		}
	}
}

// Without a member list nothing is known of anybody, and it is said once.
func TestQualifyingWithoutQuorum(t *testing.T) {
	q := &qualifying{tell: io.Discard}
	in := pagetest.Fleet{Error: "no quorum"}.Look(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)).Inputs
	q.add(in)
	var out strings.Builder
	q.print(&out, false)
	if n := strings.Count(out.String(), "no quorum"); n != 1 || strings.Contains(out.String(), "eligible") || !strings.HasSuffix(out.String(), "\n0 of 5 qualify\n") {
		t.Errorf("said %d times:\n%s", n, out.String())
	}
	if r := q.hosts[0].Refusal; r.Since != in.Now {
		t.Errorf("since %v", r.Since)
	}
}

func TestShare(t *testing.T) {
	for _, x := range []struct {
		n, all int
		want   string
	}{{0, 10, "never"}, {10, 10, "100 %"}, {9999, 10000, "over 99 %"}, {1, 1000, "under 1 %"}, {1, 2, "50 %"}} {
		if got := share(x.n, x.all); got != x.want {
			t.Errorf("%d of %d is %q, want %q", x.n, x.all, got, x.want)
		}
	}
}
