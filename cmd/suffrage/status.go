package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// Status is what `suffrage status -o json` prints.
type Status struct {
	At time.Time `json:"at"`
	// Host is where it was looked from.
	Host      string       `json:"host"`
	ClusterID string       `json:"cluster_id"`
	Mode      string       `json:"mode"`
	Voters    int          `json:"voters"`
	Target    int          `json:"target"`
	Leader    string       `json:"leader"`
	FitVoters int          `json:"fit_voters"`
	Tolerance int          `json:"tolerance"`
	Hosts     []HostStatus `json:"hosts"`
	// Controller is the one that leads, null when none does.
	Controller     *etcd.Leadership `json:"controller"`
	ControllerNote string           `json:"controller_note,omitempty"`
	// Request is what the owner asks for and is not done yet.
	Request  *membership.Request `json:"request,omitempty"`
	Decision membership.Decision `json:"decision"`
}

// HostStatus is one host of Status.
type HostStatus struct {
	Host string `json:"host"`
	Role string `json:"role"` // leader, voter, learner or standby; unknown without etcd
	// Grade is how much of a K3s server it runs, full or etcd-only; absent where that
	// is not known.
	Grade   fitness.Grade   `json:"grade,omitempty"`
	Mark    membership.Mark `json:"mark"`
	Agent   bool            `json:"agent"` // it answered
	Error   string          `json:"error,omitempty"`
	Verdict fitness.Verdict `json:"verdict"`
	// Endpoint is where its datastore endpoint leads; null where it has none.
	Endpoint *fitness.EndpointFacts `json:"endpoint,omitempty"`
	// Paths are how an overlay network reaches the other hosts from there.
	Paths []fitness.Path `json:"paths,omitempty"`
}

func newStatusCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "The fleet in one screen: voters, tolerance, verdicts, decision",
		Long: `Shows the voters and the etcd leader, how many more of them can be lost
(counted on fit ones), the verdict on every host, what would be done now and
what holds it back. It looks at etcd and the agents itself, so it works from any
host with a client certificate while the controller is down. It changes nothing.`,
		Example: "  suffrage status\n  suffrage status -o json | jq .decision.kind",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return looking(c, func(f *fleet, l look) error {
				s := f.status(l)
				if wantsJSON(c) {
					return printJSON(c.OutOrStdout(), s)
				}
				s.print(c.OutOrStdout())
				return nil
			})
		},
	}
}

func (f *fleet) status(l look) Status {
	v := l.in.View
	s := Status{At: l.in.Now, Host: f.Host, ClusterID: v.ClusterID, Mode: l.d.Mode, Voters: l.d.Voters, Target: l.in.Policy.Target,
		FitVoters: l.d.FitVoters, Tolerance: l.d.Tolerance, Controller: l.leader, ControllerNote: l.leaderNote, Request: l.in.Request, Decision: l.d}
	verdicts := map[string]fitness.Verdict{}
	for _, d := range l.d.Verdicts {
		verdicts[d.Host] = d
	}
	for _, h := range v.Hosts {
		hs := HostStatus{Host: h.Name, Role: v.Role(h.Name), Mark: h.Mark, Agent: h.Reachable, Error: h.Error, Verdict: verdicts[h.Name], Endpoint: h.Facts.Endpoint, Paths: h.Facts.Paths}
		hs.Grade = h.Grade()
		if hs.Role == "leader" {
			s.Leader = h.Name
		}
		s.Hosts = append(s.Hosts, hs)
	}
	order := []string{"leader", "voter", "learner", "standby"}
	slices.SortStableFunc(s.Hosts, func(a, b HostStatus) int {
		return cmp.Compare(min(slices.Index(order, a.Role), 1), min(slices.Index(order, b.Role), 1))
	})
	return s
}

// besides is a role, with the grade where that is not a whole server.
func besides(role string, g fitness.Grade) string {
	if g == fitness.EtcdOnly {
		return role + ", " + string(g)
	}
	return role
}

// count says how many vote.
func (s Status) count() string {
	if s.unread() {
		return fmt.Sprintf("voters not known, target %d", s.Target)
	}
	return fmt.Sprintf("%d voters of %d, %d fit, can lose %d more", s.Voters, s.Target, s.FitVoters, s.Tolerance)
}

// unread: what is in etcd, members and marks, is not known.
func (s Status) unread() bool {
	return slices.ContainsFunc(s.Decision.Refusals, func(r membership.Refusal) bool { return r.Code == membership.MembershipUnknown })
}

// mark is a host's in a word: without etcd "unmanaged" would be a guess.
func (s Status) mark(h HostStatus) string {
	if s.unread() {
		return "not known"
	}
	return h.Mark.Word()
}

func (s Status) print(w io.Writer) {
	now := s.At
	headline(w, s.Decision, now)
	leader := cmp.Or(s.Leader, "not known")
	fmt.Fprintf(w, "\n%s; etcd leader: %s\n", s.count(), leader)
	switch {
	case s.Controller != nil:
		fmt.Fprintf(w, "controller: %s leads since %s; mode %s\n", s.Controller.Host, ago(s.Controller.Since, now), s.Mode)
	default:
		fmt.Fprintf(w, "controller: %s; this is what it would say\n", s.ControllerNote)
	}
	s.printRequest(w, now)
	fmt.Fprintln(w)
	rows := [][]string{{"HOST", "ROLE", "MARK", "VERDICT", "SINCE"}}
	for _, h := range s.Hosts {
		rows = append(rows, []string{h.Host, besides(h.Role, h.Grade), s.mark(h), h.Verdict.Status.String(), cmp.Or(stood(h.Verdict, now), "-")})
	}
	table(w, rows)
	s.printReasons(w)
	if lines := relays(s.Hosts, now); len(lines) > 0 {
		fmt.Fprintf(w, "\npaths:\n  %s\n", strings.Join(lines, "\n  "))
	}
	printWarnings(w, s.Decision)
}

// printRequest is what the owner asks for and is not done yet.
func (s Status) printRequest(w io.Writer, now time.Time) {
	if s.Request != nil {
		fmt.Fprintf(w, "request: %s, %s\n", s.Request, ago(s.Request.At, now))
	}
}

// printReasons says of each host that is not simply fit why.
func (s Status) printReasons(w io.Writer) {
	for _, h := range s.Hosts {
		if h.Agent && len(h.Verdict.Reasons) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s:\n", h.Host)
		if len(h.Verdict.Reasons) > 0 {
			fmt.Fprintln(w, wrapOn(w, h.Verdict.String(), "  "))
		}
		if !h.Agent {
			fmt.Fprintln(w, wrapOn(w, "its agent does not answer: "+h.Error, "  "))
		}
	}
}

func printWarnings(w io.Writer, d membership.Decision) {
	for _, t := range d.Warnings {
		fmt.Fprintf(w, "\nwarning: %s\n", t)
	}
}

// stood says since when a verdict stands: as far as the samples reach back, so that one
// that they are full of may be older. It is empty where that is not known.
func stood(v fitness.Verdict, now time.Time) string {
	switch text := ago(v.Since, now); {
	case v.Since.IsZero():
		return ""
	case v.Whole && now.Sub(v.Since) < time.Hour:
		return "over " + text
	case v.Whole:
		return "before " + text
	default:
		return text
	}
}

// headline is the decision, and what holds it back, first.
func headline(w io.Writer, d membership.Decision, now time.Time) {
	switch d.Kind {
	case membership.Steady:
		fmt.Fprintf(w, "steady%s: nothing needs doing\n", lasting(" since ", d.Since, now, ""))
	case membership.Planned:
		fmt.Fprintf(w, "would %s%s, because\n%s\n", d.Plan, lasting(" (since ", d.Since, now, ")"), wrapOn(w, d.Plan.Why, "  "))
	case membership.StepNext:
		op := d.Operation
		what := "goes on"
		if op.TurnedBack != "" {
			what = "turns back"
		}
		fmt.Fprintf(w, "%s (operation %s, begun %s) %s: %s\n", op.Title(), op.ID, ago(op.Begun, now), what, d.Step)
		if op.TurnedBack != "" {
			fmt.Fprintln(w, wrapOn(w, "because "+op.TurnedBack, "  "))
		}
	default:
		fmt.Fprintf(w, "nothing would be done%s:\n", lasting(" (since ", d.Since, now, ")"))
	}
	printHolds(w, d, now)
}

func printHolds(w io.Writer, d membership.Decision, now time.Time) {
	for _, r := range d.Refusals {
		fmt.Fprintln(w, wrapOn(w, fmt.Sprintf("%s [%s%s]", r, r.Kind, lasting(", since ", r.Since, now, "")), "  "))
		fmt.Fprintln(w, wrapOn(w, "→ "+r.Next, "    "))
	}
}

// lasting says since when something is so, where that is known: a command that
// looks once has not seen what was before, and "since 0 s ago" would be wrong.
func lasting(before string, since, now time.Time, after string) string {
	if !since.Before(now) {
		return ""
	}
	return before + ago(since, now) + after
}
