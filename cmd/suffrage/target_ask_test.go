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

// requested are inputs in which all is well, in mode active.
func requested(t *testing.T) membership.Inputs {
	t.Helper()
	data, err := os.ReadFile("../../membership/testdata/inputs/request.inputs.json")
	if err != nil {
		t.Fatal(err)
	}
	in, err := membership.ReadInputs(data)
	if err != nil {
		t.Fatal(err)
	}
	in.Request, in.Policy.Mode, in.Policy.Maximum = nil, membership.Active, 6
	for i := range in.View.Hosts {
		in.View.Hosts[i].Facts.Server = &fitness.ServerFacts{Role: "standby"}
	}
	return in
}

func TestTargetDecided(t *testing.T) {
	for _, test := range []struct {
		name    string
		n       int
		change  func(*membership.Inputs)
		goes    bool
		said    string // on stderr
		answer  string // on stdout
		refused string // the error, empty where it may be asked for
	}{
		{"grow", 5, nil, true, "make h", "", ""},
		{"as many as there are", 3, nil, false, "", "", ""},
		{"even", 4, nil, false, "", "even-target", "4 voters would be refused"},
		{"below three", 1, nil, false, "", "below-minimum", "1 voters would be refused"},
		{"no room", 5, func(in *membership.Inputs) { in.Policy.Maximum = 5 }, false, "", "raise controller.maximum", "would be refused"},
		{"dry-run", 5, func(in *membership.Inputs) { in.Policy.Mode = membership.DryRun }, false, "", "steps:", "until: suffrage mode active"},
		{"taken back in dry-run", 3, func(in *membership.Inputs) { in.Policy.Mode = membership.DryRun }, false, "", "", ""},
		{"it waits while paused", 5, func(in *membership.Inputs) {
			in.Policy.Paused = &membership.Say{Value: true, By: "ben"}
		}, true, "suffrage resume", "", ""},
		{"without a quorum", 5, func(in *membership.Inputs) { in.View.Error = "no quorum" }, false, "", "", "no quorum"},
		{"a swap was asked for", 5, func(in *membership.Inputs) {
			in.Request = &membership.Request{Out: "h3", In: "h4", By: "ben", At: in.Now}
		}, false, "", "", "the controller takes it up first"},
		{"another number was", 5, func(in *membership.Inputs) {
			in.Request = &membership.Request{Target: 7, By: "ben", At: in.Now}
		}, true, "make h", "", ""},
		{"an operation is open", 5, func(in *membership.Inputs) {
			in.Open = &membership.Operation{ID: "op-1", In: "h4", By: "ben", Begun: in.Now}
		}, true, "op-1 (grow by h4) is under way", "", ""},
		{"back, while an operation is open", 3, func(in *membership.Inputs) {
			in.Open = &membership.Operation{ID: "op-1", In: "h4", By: "ben", Begun: in.Now}
		}, true, "op-1 (grow by h4) is under way", "", ""},
	} {
		in := requested(t)
		if test.change != nil {
			test.change(&in)
		}
		c := newTargetCmd()
		c.Flags().StringP("output", "o", "text", "")
		var out, said bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&said)
		goes, err := targetDecided(c, in, membership.Request{Target: test.n, By: "anna", At: in.Now})
		if goes != test.goes || !strings.Contains(said.String(), test.said) || !strings.Contains(out.String(), test.answer) {
			t.Errorf("%s: goes %t, said %q, answered %q", test.name, goes, &said, &out)
		}
		if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), "nothing was asked for") || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s: %v; want %q", test.name, err, test.refused)
		}
	}
}

func TestWhatTakesATargetBack(t *testing.T) {
	for _, test := range []struct{ voters, target, want int }{
		{3, 5, 3}, {4, 5, 3}, {5, 3, 5}, {4, 3, 5}, {1, 3, 3}, {2, 3, 3}, {5, 7, 5},
	} {
		if got := stay(test.voters, test.target); got != test.want {
			t.Errorf("%d voters on the way to %d: %d, want %d", test.voters, test.target, got, test.want)
		}
	}
}

// What is shown before a dead voter is removed, and the one text that will do.
func TestRemoveDeadShows(t *testing.T) {
	in := requested(t)
	id := ""
	for i, m := range in.View.Members {
		if m.Host == "h3" {
			id = m.ID
			in.View.Members[i].Responding, in.View.Members[i].Error = false, "no connection in time"
		}
	}
	in.Previous = &membership.Previous{Refusals: []membership.RefusalSeen{{Code: membership.VoterDown, Subject: "h3", Since: in.Now.Add(-time.Hour)}}}
	q := membership.Request{Dead: "h3", Member: id, By: "anna", At: in.Now}
	c := newRemoveDeadCmd()
	c.Flags().StringP("output", "o", "text", "")
	var out, said bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&said)
	if err := requestDecided(c, in, q); err != nil {
		t.Fatal(err)
	}
	showDead(&said, in, q)
	for _, want := range []string{"remove dead h3, because", "member " + id, "no connection in time", "as the controllers saw it", "h1, h2 stay", "2 voters, of whom 2 have to agree", "could be lost: 0 now, 0 then"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it does not say %q: %s", want, &said)
		}
	}
	in.Request = &membership.Request{Target: 5, By: "ben", At: in.Now}
	if err := requestDecided(c, in, q); err != nil || !strings.Contains(said.String(), "takes the place of what is asked for: 5 voters") {
		t.Errorf("a number of voters waits for the dead one: %v, %s", err, &said)
	}
	afterwards(&said, membership.Operation{Out: "h3", MembersAfter: []string{"a", "b"}}, 3)
	if !strings.Contains(said.String(), "suffrage target 3") {
		t.Errorf("what next? %s", &said)
	}
	want := "remove h3 " + id
	for _, test := range []struct {
		flag, typed string
		code        int
	}{
		{want, "", exitOK}, {"", want, exitOK},
		{"yes", "", exitFailed}, {want + " ", "", exitFailed},
		{"", "yes", exitFailed}, {"", strings.ToUpper(want), exitFailed}, {"", "", exitFailed},
	} {
		c := newRemoveDeadCmd()
		c.SetErr(&said)
		c.SetIn(strings.NewReader(test.typed + "\n"))
		var err error
		if test.flag == "" {
			err = typed(c, want)
		} else if err = c.Flags().Set("confirm", test.flag); err == nil {
			err = confirmText(c, want)
		}
		code := exitOK
		if e, ok := err.(*exitError); ok {
			code = e.code
		}
		if code != test.code {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
