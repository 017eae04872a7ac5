package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"suffrage/fitness"
)

// Request is what the owner asks for: one swap (Out and In), another number of
// voters (Target), the removal of a dead one (Dead and Member), or another grade
// of a host's server (Regrade and To). It is decided
// under the same guards as the controller's own swaps, but for what it is meant
// to mend.
type Request struct {
	Out string `json:"out,omitempty"`
	In  string `json:"in,omitempty"`
	// Target is the number of voters to grow or shrink to, one at a time.
	Target int `json:"target,omitempty"`
	// Dead is the host whose voter is dead, and Member the ID of that voter, as
	// the owner confirmed it: a newer member of the same host is another one.
	Dead   string `json:"dead,omitempty"`
	Member string `json:"member,omitempty"`
	// Regrade is the host whose server is to become To.
	Regrade string        `json:"regrade,omitempty"`
	To      fitness.Grade `json:"to,omitempty"`
	By      string        `json:"by"`
	At      time.Time     `json:"at"`
	Reason  string        `json:"reason,omitempty"`
}

// RequestTime is how long a request may wait to be taken up, but for one for a
// number of voters, which stays until they have it. One that was left,
// while nobody led or the mode was dry-run, must not fire when it is forgotten.
const RequestTime = 10 * time.Minute

// String is "swap h3 → h4, asked for by anna", "5 voters, asked for by anna",
// "remove dead h3 (member 9a1c), asked for by anna" or "regrade h3 to etcd-only,
// asked for by anna".
func (r Request) String() string {
	what := moves(r.Out, r.In, false)
	switch {
	case r.Dead != "":
		what = fmt.Sprintf("remove dead %s (member %s)", r.Dead, r.Member)
	case r.Target != 0:
		what = fmt.Sprintf("%d voters", r.Target)
	case r.Regrade != "":
		what = regrades(r.Regrade, r.To)
	}
	return what + ", asked for by " + r.By
}

// again is the command that asks for it.
func (r Request) again() string {
	switch {
	case r.Dead != "":
		return "suffrage remove-dead " + r.Dead
	case r.Target != 0:
		return fmt.Sprintf("suffrage target %d", r.Target)
	case r.Regrade != "":
		return fmt.Sprintf("suffrage regrade %s %s", r.Regrade, r.To)
	}
	return "suffrage swap " + r.Out + " " + r.In
}

// Over reports whether a decision that was taken with the request ends it. One
// for a number of voters stays until they have it, through operations, cooldowns
// and whatever else lifts; any other is taken up at once or not at all.
func (r Request) Over(d Decision) bool {
	if r.Target == 0 {
		return d.Kind != Planned
	}
	return d.Operation == nil && (d.Kind == Steady || slices.ContainsFunc(d.Refusals, func(x Refusal) bool { return x.Kind == Reject }))
}

// Displaces reports whether it takes the place of one that is there. Only one for a
// number of voters gives way, which may wait without end for just this: for the dead
// voter that is to go, or for the server that is to be full.
func (r Request) Displaces(there Request) bool {
	return there.Target != 0 && (r.Dead != "" || r.To == fitness.Full)
}

// Same reports whether it is one and the same request.
func (r Request) Same(o Request) bool {
	at := r.At.Equal(o.At)
	r.At, o.At = time.Time{}, time.Time{}
	return at && r == o
}

// Validate says what cannot be.
func (r Request) Validate() error {
	for _, s := range []string{r.Out, r.In, r.Dead, r.Member, r.Regrade, string(r.To), r.By, r.Reason} {
		if len(s) > 500 || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return fmt.Errorf("%.40q: at most 500 bytes of printable text", s)
		}
	}
	swap, dead, regrade, forms := r.Out != "" || r.In != "", r.Dead != "" || r.Member != "", r.Regrade != "" || r.To != "", 0
	for _, form := range []bool{swap, dead, r.Target != 0, regrade} {
		if form {
			forms++
		}
	}
	switch {
	case forms != 1:
		return errors.New("exactly one of out and in, target, dead and member, or regrade and to is needed")
	case r.By == "" || r.At.IsZero():
		return errors.New("by and at are needed")
	case swap && (r.Out == "" || r.In == ""):
		return errors.New("out and in are needed, both")
	case dead && (r.Dead == "" || r.Member == ""):
		return errors.New("dead and member are needed, both")
	case regrade && (r.Regrade == "" || r.To != fitness.Full && r.To != fitness.EtcdOnly):
		return fmt.Errorf("regrade and to are needed, both, and to is %s or %s", fitness.Full, fitness.EtcdOnly)
	case r.Target < 0 || r.Target > 99: // which of these can be is for a refusal to say
		return fmt.Errorf("target %d: a number of voters, 1 to 99", r.Target)
	case swap && r.Out == r.In:
		return fmt.Errorf("%s cannot take its own place", r.Out)
	case r.By == ByController:
		return fmt.Errorf("%q is who asks where no person does", ByController)
	}
	return nil
}

// onRequest is the plan that a request asks for, and everything against it,
// beside the guards that are said already.
func (a *assessment) onRequest(q Request, verdicts []fitness.Verdict, said []Refusal) (*Plan, []Refusal) {
	switch {
	case q.Dead != "":
		return a.bury(q, said)
	case q.Target != 0:
		return a.resize(q, verdicts, said)
	case q.Regrade != "":
		if q.To == fitness.Full {
			said = uncounted(said)
		}
		return a.askedRegrade(q, said)
	}
	said = append(said, a.manyUnfit()...)
	plan, why := a.asked(q, verdicts, said)
	return plan, append(said, why...)
}

// asked is the swap that a request asks for, and everything against it. That
// swaps did not help of late is nothing against it: the owner knows better.
func (a *assessment) asked(q Request, verdicts []fitness.Verdict, said []Refusal) (*Plan, []Refusal) {
	var refusals []Refusal
	reject := func(c Code, subject, detail, next string) {
		refusals = append(refusals, rejected(c, subject, detail, next))
	}
	refusals = append(refusals, a.old(q)...)
	if !a.isVoter(q.Out) {
		reject(NotAVoter, q.Out, "it has no vote that it could lose", "suffrage status shows who votes")
	} else if r := a.forbidden(q.Out); r != nil {
		reject(r.Code, q.Out, r.Detail, r.Next)
	}
	var standing fitness.Standing
	switch h := a.hosts[q.In]; {
	case h == nil:
		reject(NoCandidate, q.In, "it is not in the roster", "suffrage host list shows which hosts are")
	case a.listed[q.In]:
		reject(NoCandidate, q.In, "it has a member already", "suffrage status shows who has none")
	case !h.Mark.IsEligible():
		reject(NoCandidate, q.In, "you have not said that it may have a vote", "suffrage host eligible "+q.In)
	default:
		s, r := a.stand(q.In, a.vacancy(a.suspected(q.Out)))
		if standing = s; r != nil {
			r.Kind = Reject
			refusals = append(refusals, *r)
		}
	}
	// How the outgoing voter does is the owner's affair; of those that stay it has
	// to be known.
	for _, r := range a.samples(verdicts, said) {
		if r.Subject != q.Out && r.Code != NotHeld {
			refusals = append(refusals, r)
		}
	}
	refusals = append(refusals, a.waits("")...)
	why := q.because("asked for it")
	if bad := a.violations(q.Out); len(bad) > 0 {
		why += fmt.Sprintf("; %s: %s, for a whole window", q.Out, describe(bad, 3))
	}
	why += "; " + q.In + " is fit: " + strings.TrimPrefix(standing.String(), q.In+": ")
	return &Plan{Out: q.Out, In: q.In, OutMember: a.member[q.Out], Why: why, Figures: data(a.violations(q.Out)),
		Steps: steps(q.Out, q.In, false), Ranked: []string{standing.String()}}, refusals
}

// old refuses a request that was left.
func (a *assessment) old(q Request) []Refusal {
	if a.in.Now.Sub(q.At) <= RequestTime {
		return nil
	}
	return []Refusal{rejected(RequestOld, "", fmt.Sprintf("%s at %s, and not taken up within %s", q, stamp(q.At), RequestTime), "ask again: "+q.again())}
}

// because is "anna asked for it: new rack".
func (r Request) because(what string) string {
	why := r.By + " " + what
	if r.Reason != "" {
		why += ": " + r.Reason
	}
	return why
}

func rejected(c Code, subject, detail, next string) Refusal {
	return Refusal{Code: c, Kind: Reject, Subject: subject, Detail: detail, Next: next}
}

// byRequest is why a voter goes that nothing needs to be wrong with.
const byRequest = "request"

// suspected is a voter as the one that goes, whether it is to blame or not.
func (a *assessment) suspected(host string) fitness.Suspect {
	s := fitness.Suspect{Host: host, By: byRequest}
	for _, p := range a.blame.Pairs {
		if slices.Contains([]string{p.A, p.B}, host) {
			s.Clears++
		}
	}
	return s
}
