package membership

import "fmt"

// Plan is a swap that would be done: one voter out, one voter in.
type Plan struct {
	Out string `json:"out"`
	In  string `json:"in"`
	// OutMember is the ID of the member that would be removed.
	OutMember string `json:"out_member"`
	// Why is one sentence with the figures.
	Why string `json:"why"`
	// Figures are the readings that justify it.
	Figures []Datum `json:"figures"`
	// Steps are what would be done, in order.
	Steps []Step `json:"steps"`
	// Ranked are the fit candidates, best first, with what put them there; at
	// most maxRanked of them.
	Ranked []string `json:"ranked"`
}

// maxRanked bounds what a report shows of a large fleet.
const maxRanked = 20

// Step is one move of a plan.
type Step struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Text   string `json:"text"`
}

// String is "swap h3 → h4".
func (p Plan) String() string { return fmt.Sprintf("swap %s → %s", p.Out, p.In) }

// steps are the nine steps of a swap. Dry-run shows them; the texts name the
// hosts so that the owner reads what would happen to which machine.
func steps(out, in string) []Step {
	texts := []struct{ name, text string }{
		{"lease", "take the shared Lease, check every guard again"},
		{"snapshot", fmt.Sprintf("save a snapshot on a healthy voter, not on %s; verify hash, size and revision", out)},
		{"join", fmt.Sprintf("make %s a server and add it as a learner", in)},
		{"promote", fmt.Sprintf("promote %s once it has caught up", in)},
		{"soak", fmt.Sprintf("watch all voters, %s among them, until they have been healthy for the soak time", in)},
		{"step-down", fmt.Sprintf("step %s to etcd-only and move etcd leadership away from it", out)},
		{"remove", fmt.Sprintf("fence %s so that it cannot start again, then ask for its removal", out)},
		{"clean-up", fmt.Sprintf("stop %s's etcd, move its datastore aside, keep the host as a standby", out)},
		{"record", "verify the voters, record the operation, release the Lease"},
	}
	steps := make([]Step, len(texts))
	for i, t := range texts {
		steps[i] = Step{Number: i + 1, Name: t.name, Text: t.text}
	}
	return steps
}
