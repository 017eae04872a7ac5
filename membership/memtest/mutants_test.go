package memtest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutants are the product, or what it stands on, broken by hand in one place
// each. The simulator that finds nothing wrong with one of them is of no use.
var mutants = []struct {
	invariant, what string // of the design's sixteen, see doc.go
	file            string // in membership
	was, is         string
}{
	{"2", "a lost holder's writes are taken", "memtest/lease.go", "if c.Lease.Holder != holder || c.Lease.Term != term {", "if false {"},
	{"3", "the guards are not asked again before the add", "forward.go", "held := m.holding(m.op.plan(), slices.Concat(Guards(*m.in0()), guardView(*m.in0())))", "held := guardView(*m.in0())"},
	{"3", "a voter that does not answer holds nothing back", "guard_voters.go", "for _, m := range in.View.Voters() {\n\t\tlag", "for _, m := range responding(in.View) {\n\t\tlag"},
	{"4", "a promotion does not look at the voters", "forward.go", "if held := append(m.well(m.op.InMember), m.decisive()...); len(held) > 0 {", "if held := append(m.well(m.op.InMember), m.decisive()...); false {"},
	{"5", "the newcomer's lag is not looked at", "forward.go", "if lag <= maxLagVoting {", "if lag <= 1<<60 {"},
	{"5", "no soak", "forward.go", "soaked < soak.Std() && !m.op.Dead {", "soaked < 0 && !m.op.Dead {"},
	{"5", "a voter is removed while another is in trouble", "forward.go", "append(m.newcomer(), m.well(m.op.OutMember)...)", "m.newcomer()"},
	{"6", "a leader is removed", "forward.go", "case m.leader != m.op.Out || m.out == nil:", "case true:"},
	{"7", "a removal counts when it is asked for", "operate.go", `return m.op.OutMember != "" && m.out == nil }`, `return m.op.OutMember != "" && (m.out == nil || m.requested() != nil) }`},
	{"8", "no fence", "forward.go", "case s != nil && !s.Fenced:\n\t\tif m.op.Dead {", "case false:\n\t\tif m.op.Dead {"},
	{"8", "the newcomer is removed unfenced", "turnback.go", "if s != nil && !s.Fenced && !needed {", "if false && needed {"},
	{"8", "a start that was called for is not waited for", "turnback.go", "if m.settling() { // a start", "if false { // a start"},
	{"8", "the fence stays on a host that keeps its vote", "turnback.go", "case s != nil && s.Fenced:", "case false:"},
	{"8", "a server that joins by itself is left with a silent agent", "turnback.go", "return nil, m.unproven(m.op.In, \"its server may still", "return m.finish(Undone, m.op.TurnedBack) // (\""},
	{"8", "a start from before is left to come", "turnback.go", "if started && s.Term < m.op.Term {", "if false {"},
	{"9", "a datastore is deleted", "memtest/host.go", "c.check.setAside(h)\n\t\t\t\th.Aside, h.Data = append(h.Aside, h.Data), \"\"", "c.check.setAside(h)\n\t\t\t\th.Data = \"\""},
	{"9", "a voter's host is retired", "forward.go", "m.do(Fence, step, m.op.Out", "m.do(Retire, step, m.op.Out"},
	{"10", "no snapshot", "forward.go", "case m.op.Snapshot == nil:", "case false:"},
	{"11", "orders without a Term", "control/operator.go", "order := Order{Verb: a.Verb, Term: o.Journal.Term(),", "order := Order{Verb: a.Verb,"},
	{"11", "the agent does not look at the Term", "memtest/host.go", "if o.Term < h.Seen {", "if false {"},
	{"11", "turning back does not show the Term to the outgoing host", "turnback.go", "s.Term < m.op.Term:", "false:"},
	{"11", "the Lease is not read before the act", "memtest/lease.go", "if name != \"journal\" && p.c.Now.After(p.deadline) {", "if false {"},
	{"12", "an add without an answer is repeated", "operate.go", "if (m.op.InMember == \"\" || again) && m.joins(x) {", "if again && false {"},
	{"13", "a pin does not turn back", "turnback.go", "m.hosts[m.op.Out].Mark.IsPinned():", "false:"},
	{"13", "a host that is no longer eligible is promoted", "turnback.go", "!m.hosts[m.op.In].Mark.IsEligible():", "false:"},
	{"14", "dry-run acts", "control/operator.go", "case d.Mode != membership.Active:", "case false:"},
	{"15", "somebody else's change is ignored", "operate.go", "if len(odd) == 0 {", "if true {"},
	{"15", "the owner is called for a silent agent that is well", "candidate.go", "&& h.Reachable && h.Facts.Server == nil", "&& h.Facts.Server == nil"},
	{"15", "a stopped operation leaves its removal armed", "operate.go", "case m.requested() != nil: //", "case false: //"},
	{"15", "an operation that somebody else ended leaves its fence", "operate.go", "case m.trapped() != nil && !m.settling():", "case false:"},
	{"3", "a voter is restarted while another is in trouble", "regrading.go", "if held := m.well(m.op.Member); len(held) > 0 {", "if held := m.well(m.op.Member); false {"},
	{"6", "a leader is restarted", "regrading.go", "if m.leader == m.op.Regrade {", "if false {"},
	{"11", "a regrade from before is left to come", "regrading.go", "back && s.Term < m.op.Term:", "false:"},
	{"12", "a regrade counts when its settings are written", "memtest/host.go", "if h.Running && h.runs != h.settings {", "if false {"},
	{"15", "the number of voters holds a step up back", "grade.go", "return slices.Contains([]Code{BelowTarget, ExtraVoter, EvenTarget, AtCeiling}, r.Code)", "return false"},
	{"15", "a number of voters holds a due step up back", "target.go", "if up := a.dueUp(); up != nil && n >= 3 {", "if up := a.dueUp(); false {"},
	{"16", "a host starts as a member of no cluster", "control/operator.go", "Operation: op.ID, Member: a.Member}", "Operation: op.ID, Member: \"new\"}"},
}

// TestMutantsFit: what a mutant changes stands in the product once. Without it the
// table grows old unseen, since make test does not build mutants.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants {
		source, err := os.ReadFile(filepath.Join("..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), m.was); n != 1 {
			t.Errorf("%s: %s has %q %d times, want once: bring the table up to date", m.what, m.file, m.was, n)
		}
	}
}

// TestMutants builds each of them beside the tree (go test -overlay) and wants
// the tests of this package to fail. It takes some minutes: make mutants.
func TestMutants(t *testing.T) {
	if os.Getenv("SUFFRAGE_MUTANTS") == "" {
		t.Skip("SUFFRAGE_MUTANTS is not set")
	}
	for _, m := range mutants {
		t.Run(m.invariant+" "+m.what, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("..", m.file))
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			mutant, overlay := filepath.Join(t.TempDir(), "mutant.go"), filepath.Join(t.TempDir(), "overlay.json")
			replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
			if err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string]string{mutant: strings.Replace(string(source), m.was, m.is, 1), overlay: string(replace)} {
				if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			began := time.Now()
			run := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-failfast", "-run", "TestSimulation|TestEvery|TestRemoval|TestRegrade", ".")
			run.Env = append(os.Environ(), "SUFFRAGE_MUTANTS=")
			said, err := run.CombinedOutput()
			switch out := string(said); {
			case err == nil:
				t.Error("nothing found it")
			case !strings.Contains(out, "--- FAIL"):
				t.Errorf("it does not build: %s", out)
			default:
				t.Logf("%s: %s", time.Since(began).Round(time.Second), firstFailure(out))
			}
		})
	}
}

// firstFailure is the line that says what was found first.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		for _, mark := range []string{"broken: ", "not settled: ", "turned at ", "little was tested", "nothing landed"} {
			if _, what, found := strings.Cut(line, mark); found {
				return mark + strings.TrimSpace(what)
			}
		}
	}
	return strings.TrimSpace(out)
}
