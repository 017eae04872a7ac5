package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
)

// script is a fleet after some lines of a script.
func script(t *testing.T, lines ...string) *fleet {
	t.Helper()
	f := newFleet(3, 2)
	for _, l := range lines {
		if err := f.apply(l); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// S006: four voters, each up or down. The outgoing one goes only when all that
// stay answer: it itself may be down, nobody else.
func TestRemovalBesideTheDead(t *testing.T) {
	voters := []string{"h1", "h2", "h3", "h4"} // h3 goes, h4 has come
	for down := range 16 {
		lines := []string{"open h3 h4", "joined h4 voter 3m", "soaked 2m", "server h3 fenced"}
		var dead []string
		for i, v := range voters {
			if down&(1<<i) != 0 {
				lines = append(lines, "silent "+v+" 5s")
				dead = append(dead, v)
			}
		}
		d := Decide(script(t, lines...).inputs())
		proceeds := d.Step != nil && d.Step.Verb == RequestRemoval
		want := len(dead) == 0 || slices.Equal(dead, []string{"h3"})
		if proceeds != want {
			t.Errorf("down %v: removal asked for is %t, want %t\n%s", dead, proceeds, want, d)
		}
		if d.Step != nil && d.Step.Changes() && d.Step.Verb != Unfence && !proceeds {
			t.Errorf("down %v: %s", dead, d.Step)
		}
	}
}

// S008: with n voters, unfit as one may be, nothing is planned below three, nor
// from an even number.
func TestPlanByNumberOfVoters(t *testing.T) {
	for n := 1; n <= 7; n++ {
		f := newFleet(n, 2)
		f.in.Policy.Target, f.in.Policy.Maximum = max(3, n-1+n%2), 9
		if err := f.apply("wal_fsync h1 300x30ms"); err != nil {
			t.Fatal(err)
		}
		d := Decide(f.inputs())
		if want := n >= 3 && n%2 == 1; (d.Plan != nil) != want {
			t.Errorf("%d voters: planned is %t, want %t\n%s", n, d.Plan != nil, want, d)
		}
		if n < 3 && !strings.Contains(d.String(), "below-minimum") {
			t.Errorf("%d voters: not below-minimum\n%s", n, d)
		}
	}
}

// What was decided once the journal was written is decided again from it.
func TestOperationIsWrittenBeforeTheAct(t *testing.T) {
	f := script(t, "open h3 h4")
	for range 3 {
		in := f.inputs()
		d := Decide(in)
		if d.Step == nil || d.Step.Verb != AddLearner {
			t.Fatalf("want add-learner:\n%s", d)
		}
		if d.Operation.Called.IsZero() || d.Operation.began("join").IsZero() {
			t.Fatalf("the intent is not in the operation: %+v", d.Operation)
		}
		if len(d.Operation.Steps) != 2 {
			t.Fatalf("steps %+v", d.Operation.Steps)
		}
		f.in.Open = d.Operation
	}
}

// Whatever happens in which order, a step has one record.
func TestStepsDoNotGrow(t *testing.T) {
	op := Operation{}
	for i := range 100 {
		op.at([]string{"join", "promote", "soak"}[i%3], testNow.Add(time.Duration(i)*time.Second))
		open := 0
		for _, s := range op.Steps {
			if s.Ended.IsZero() {
				open++
			}
		}
		if open != 1 || len(op.Steps) > 3 {
			t.Fatalf("%d steps, %d open", len(op.Steps), open)
		}
	}
}

// The figure after an operation is there once every pair of the voters that it
// left has a full window, and only then.
func TestMeasured(t *testing.T) {
	ended := func(f *fleet) Operation {
		op := Operation{ID: "op", ClusterID: "c1", Outcome: Completed}
		for _, m := range f.in.View.Members {
			op.MembersAfter = append(op.MembersAfter, m.ID)
		}
		return op
	}
	for _, c := range []struct {
		why   string
		lines []string
		spoil func(*Operation)
		want  bool
	}{
		{why: "all windows are full", want: true},
		{why: "a pair has too few samples", lines: []string{"rtt h1 h2 99x20ms"}},
		{why: "one direction was not measured", lines: []string{"unmeasured rtt h2 h1"}},
		{why: "the voters are others by now", lines: []string{"removed h3"}},
		{why: "the list was not read", lines: []string{"error no quorum"}},
		{why: "it was undone", spoil: func(op *Operation) { op.Outcome = Undone }},
		{why: "it is of another cluster", spoil: func(op *Operation) { op.ClusterID = "c0" }},
		{why: "it is known", spoil: func(op *Operation) { op.WorstAfter = new(fitness.Figure) }},
	} {
		f := newFleet(3, 2)
		op := ended(f)
		if c.spoil != nil {
			c.spoil(&op)
		}
		for _, l := range c.lines {
			if err := f.apply(l); err != nil {
				t.Fatal(err)
			}
		}
		got, ok := Measured(f.inputs(), op)
		if ok != c.want {
			t.Errorf("%s: measured is %t, want %t", c.why, ok, c.want)
		}
		if ok && fmt.Sprint(*got.WorstAfter) != "0.02" {
			t.Errorf("%s: %v, want 0.02", c.why, *got.WorstAfter)
		}
	}
}
