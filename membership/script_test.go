package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestDecide runs the scripts in testdata/decide. Rewrite their answers with
//
//	go test ./membership -run TestDecide -rewrite
//
// and read the difference.
//
// A script says
//
//	decide voters=3 standbys=2     a healthy fleet, h1 to h3 voting, then one
//	                               change per line (fleet_test.go, apply)
//	again after=30s                the fleet and decision before, this much
//	                               later, then changes
//
// and with steps, verdicts or figures prints these too; with qualify, who qualifies
// instead. RUNS are samples, three
// seconds apart, the last of them now: "297x20ms 3xlost".
func TestDecide(t *testing.T) {
	datadriven.Walk(t, "testdata/decide", func(t *testing.T, path string) {
		var f *fleet
		var d Decision
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			switch c.Cmd {
			case "decide":
				voters, standbys := 3, 2
				c.MaybeScanArgs(t, "voters", &voters)
				c.MaybeScanArgs(t, "standbys", &standbys)
				f = newFleet(voters, standbys)
			case "again":
				var after string
				c.ScanArgs(t, "after", &after)
				later, err := time.ParseDuration(after)
				if err != nil {
					t.Fatal(err)
				}
				f.in.Now, f.in.Previous = f.in.Now.Add(later), d.Remember()
				f.in.View.At = f.in.Now
			default:
				c.Fatalf(t, "no such command: %s", c.Cmd)
			}
			for line := range strings.Lines(c.Input) {
				if err := f.apply(line); err != nil {
					c.Fatalf(t, "%v", err)
				}
			}
			d = Decide(f.inputs())
			if c.HasArg("qualify") {
				return qualifying(f.inputs())
			}
			if f.in.Open != nil {
				return showStep(d)
			}
			return show(d, c)
		})
	})
}

// show is the decision's own rendering, without the steps of a plan (they are
// the same for all) unless asked for.
func show(d Decision, c *datadriven.TestData) string {
	shown := d
	if d.Plan != nil && !c.HasArg("steps") {
		plan := *d.Plan
		plan.Steps = nil
		shown.Plan = &plan
	}
	var b strings.Builder
	b.WriteString(shown.String())
	if c.HasArg("ranked") && d.Plan != nil {
		for _, r := range d.Plan.Ranked {
			b.WriteString("ranked " + r + "\n")
		}
	}
	if c.HasArg("figures") {
		for _, r := range d.Refusals {
			for _, f := range r.Figures {
				b.WriteString(string(r.Code) + " " + f.Name + " " + f.Peer + " " + f.Value.Text(f.Unit) + " limit " + f.Limit.Text(f.Unit) + "\n")
			}
		}
	}
	if c.HasArg("verdicts") {
		for _, v := range d.Verdicts {
			b.WriteString(v.Host + " " + v.String() + "\n")
		}
	}
	return b.String()
}

// qualifying is a line a host, and another of what helps.
func qualifying(in Inputs) string {
	var b strings.Builder
	for _, q := range Qualify(in) {
		fmt.Fprintf(&b, "%s %s %s %s %t\n", q.Host, q.Role, q.Mark, q.Status, q.Qualifies)
		if q.Refusal != nil {
			fmt.Fprintf(&b, "  %s\n  → %s\n", q.Refusal, q.Refusal.Next)
		}
	}
	return b.String()
}

// showStep is the next act of an open operation, or what holds it up.
func showStep(d Decision) string {
	if d.Step == nil {
		return d.String()
	}
	text := string(d.Kind) + " (" + d.Step.Step + "): " + d.Step.String() + "\n"
	if d.Step.Outcome != "" {
		text += "  " + string(d.Step.Outcome) + "\n"
	}
	if t := d.Operation.TurnedBack; t != "" {
		text += "  turned back: " + t + "\n"
	}
	return text
}
