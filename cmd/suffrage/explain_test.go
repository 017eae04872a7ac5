package main

import (
	"strings"
	"testing"

	"suffrage/fitness"
	"suffrage/membership"
)

// Of a host whose agent does not answer a command knows what others measure, and
// that is why it is unfit.
func TestExplainOfAHostThatDoesNotAnswer(t *testing.T) {
	rtt := func(host, peer string, band fitness.Band, note string) fitness.Reading {
		return fitness.Reading{Signal: fitness.RTT, Host: host, Peer: peer, Band: band, Count: fitness.WindowSize, Figure: fitness.Inf, Note: note}
	}
	in := membership.Inputs{
		View: membership.View{Hosts: []membership.Host{{Name: "h1", Reachable: true}, {Name: "h4", Error: "no answer in time"}}},
		Readings: []fitness.Reading{
			rtt("h1", "h4", fitness.Over, "no answer within 2s"),
			rtt("h2", "h4", fitness.Under, ""),
			rtt("h1", "h2", fitness.Over, "another pair"),
		},
	}
	e := explain(look{in: in}, "h4")
	if len(e.Readings) != 0 || len(e.ByOthers) != 2 {
		t.Errorf("its own %v, by others %v", e.Readings, e.ByOthers)
	}
	var b strings.Builder
	e.print(&b)
	for _, want := range []string{"from h1  lost", "from h2", "rtt from h1: no answer within 2s", "its agent does not answer: no answer in time", "its agent has told none"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "another pair") || strings.Contains(b.String(), "0 MiB") {
		t.Errorf("this does not belong to it:\n%s", &b)
	}
}
