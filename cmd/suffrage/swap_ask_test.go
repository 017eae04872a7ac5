package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// What a look at the fleet makes of a request before anything is asked for.
func TestSwapDecided(t *testing.T) {
	data, err := os.ReadFile("../../membership/testdata/inputs/request.inputs.json")
	if err != nil {
		t.Fatal(err)
	}
	armed := func(in *membership.Inputs) {
		in.Policy.Mode = membership.Active
		for i := range in.View.Hosts {
			in.View.Hosts[i].Facts.Server = &fitness.ServerFacts{Role: "standby"}
		}
	}
	for _, test := range []struct {
		name    string
		change  func(*membership.Inputs)
		output  string
		answer  string // on stdout
		refused string // the error, empty where the swap may be asked for
	}{
		{"armed", armed, "text", "", ""},
		{"dry-run", func(*membership.Inputs) {}, "text", " 3  make h5 a server", "until: suffrage mode active"},
		{"dry-run in JSON", func(*membership.Inputs) {}, "json", `"kind": "plan"`, "until: suffrage mode active"},
		{"paused", func(in *membership.Inputs) {
			armed(in)
			in.Policy.Paused = &membership.Say{Value: true, By: "ben"}
		}, "text", "→ suffrage resume", "would be refused"},
		{"no server on the newcomer", func(in *membership.Inputs) { in.Policy.Mode = membership.Active }, "json", `"code": "not-qualified"`, "would be refused"},
		{"an operation is open", func(in *membership.Inputs) {
			armed(in)
			in.Open = &membership.Operation{ID: "op-1", Out: "h3", In: "h4", By: "ben", Begun: in.Now}
		}, "text", "", "op-1 (swap h3 → h4), asked by ben, has been open since"},
		{"another one asked", func(in *membership.Inputs) {
			armed(in)
			in.Request = &membership.Request{Out: "h3", In: "h4", By: "ben", At: in.Now}
		}, "text", "", "swap h3 → h4, asked for by ben"},
	} {
		in, err := membership.ReadInputs(data)
		if err != nil {
			t.Fatal(err)
		}
		q := *in.Request
		in.Request = nil
		test.change(&in)
		c := newSwapCmd()
		c.Flags().StringP("output", "o", test.output, "")
		var out, said bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&said)
		err = requestDecided(c, in, q)
		if test.refused == "" {
			if err != nil || out.Len() > 0 || !strings.Contains(said.String(), "swap h2 → h5, because") {
				t.Errorf("%s: %v, answered %q, said %q", test.name, err, &out, &said)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "nothing was asked for") || !strings.Contains(err.Error(), test.refused) || !strings.Contains(out.String(), test.answer) {
			t.Errorf("%s: %v, answered %q; want %q and %q", test.name, err, &out, test.refused, test.answer)
		}
	}
}

func TestFollowedIsOurs(t *testing.T) {
	before := membership.Operation{ID: "op-1", Out: "h2", In: "h5", By: "anna", Outcome: membership.Undone}
	w := followed{asked: membership.Request{Out: "h2", In: "h5", By: "anna", At: time.Unix(100, 0)}, ended: []membership.Operation{before}}
	now := before
	now.ID, now.Outcome = "op-2", ""
	other := now
	other.By = membership.ByController
	for _, test := range []struct {
		name string
		op   membership.Operation
		ours bool
	}{{"from before", before, false}, {"new", now, true}, {"the same hosts, nobody asked", other, false}} {
		if w.ours(test.op) != test.ours {
			t.Errorf("%s: %t", test.name, !test.ours)
		}
	}
}
