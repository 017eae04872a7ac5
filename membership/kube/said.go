package kube

import (
	"slices"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"suffrage/fitness"
	"suffrage/membership"
)

// Annotations that the leading controller writes on the Nodes of the roster's
// hosts, and takes off those of others. They are for people: nothing reads them.
const (
	// Verdict is fit, marginal, unfit or unknown; what makes it is beside it.
	Verdict       = "suffrage.io/verdict"
	VerdictReason = Verdict + reason
	// Role is leader, voter, learner or standby; none while the members are not known.
	Role = "suffrage.io/role"
	// Grade is how much of a K3s server the host runs, full or etcd-only; none where its
	// agent does not tell.
	Grade = "suffrage.io/grade"
	// Decision is on the voters' Nodes and on those that it names.
	Decision = "suffrage.io/decision"
	// Operation is the one under way, on the Nodes of the hosts that it moves.
	Operation = "suffrage.io/operation"
	// AsOf is when all of these were written, RFC 3339 by the controller's clock.
	AsOf = "suffrage.io/as-of"
)

// Reported are all of them.
func Reported() []string {
	return []string{Verdict, VerdictReason, Role, Grade, Decision, Operation, AsOf}
}

// said is what is to stand on one Node.
type said struct {
	text map[string]string // by annotation, without AsOf
	// key changes when it is worth a write at once: it has no figures.
	key string
	at  time.Time
}

// sayOf is what a round says of each host in the roster.
func sayOf(in membership.Inputs, d membership.Decision) map[string]said {
	all := make(map[string]said, len(in.View.Hosts))
	roles, about := rolesOf(in.View), concerned(in, d)
	for _, h := range in.View.Hosts {
		s := said{text: map[string]string{Verdict: fitness.StatusUnknown.String()}, at: in.Now}
		if g := h.Grade(); g != "" {
			s.text[Grade] = string(g)
		}
		all[h.Name] = s
	}
	for _, v := range d.Verdicts {
		if s, ok := all[v.Host]; ok {
			s.text[Verdict] = v.Status.String()
			if _, why, _ := strings.Cut(v.String(), ": "); why != "" {
				s.text[VerdictReason] = line(why)
			}
		}
	}
	for host, s := range all {
		key := s.text[Verdict]
		if role := roles[host]; role != "" {
			s.text[Role] = role
			key += "|" + role
		}
		key += "|" + s.text[Grade]
		if about[host] {
			s.text[Decision] = line(sentence(d))
			key += "|" + keyOf(d) + d.Mode
		}
		if op := openOf(in, d); op != nil && slices.Contains(op.About(), host) {
			s.text[Operation] = line(under(*op))
			key += "|" + op.ID + stepOf(*op).Name + op.TurnedBack
		}
		s.key = key
		all[host] = s
	}
	return all
}

// keyOf tells decisions apart: the acts of an operation are one, since its steps
// are told beside it.
func keyOf(d membership.Decision) string {
	if underWay(d) {
		return string(d.Kind) + " " + d.Operation.ID
	}
	return d.Key()
}

func underWay(d membership.Decision) bool {
	return d.Step != nil && d.Operation != nil && len(d.Refusals) == 0
}

// sentence is a decision on one line without figures: what changes it is worth
// an Event.
func sentence(d membership.Decision) string {
	switch {
	case d.Plan != nil && d.Mode != membership.Active:
		return "would " + d.Plan.String() + " (" + d.Mode + ")"
	case d.Plan != nil:
		return d.Plan.String()
	case underWay(d):
		return d.Operation.Title() + " is under way"
	case d.Kind == membership.Refused:
		return "refused: " + codes(strings.TrimPrefix(d.Key(), string(membership.Refused)+" "))
	}
	return codes(d.Key())
}

// codes are those of refusals without the brackets of a subject that is empty.
func codes(key string) string { return strings.ReplaceAll(key, "()", "") }

// under is an operation under way on one line.
func under(op membership.Operation) string {
	text := op.Title()
	if s := stepOf(op); s.Name != "" {
		text += ": " + s.Name + " since " + s.Begun.UTC().Format(time.RFC3339)
	}
	if op.TurnedBack != "" {
		text += ", turns back: " + op.TurnedBack
	}
	return text + " (" + op.ID + ")"
}

// stepOf is the step that an operation is at, empty before the first.
func stepOf(op membership.Operation) membership.StepRecord {
	for _, s := range op.Steps {
		if s.Ended.IsZero() {
			return s
		}
	}
	return membership.StepRecord{}
}

// openOf is the operation under way: as it is to be written down, where the
// decision says that.
func openOf(in membership.Inputs, d membership.Decision) *membership.Operation {
	if d.Operation != nil {
		return d.Operation
	}
	return in.Open
}

// concerned are the voters (all hosts, where those are not known), and the hosts
// that the decision names.
func concerned(in membership.Inputs, d membership.Decision) map[string]bool {
	about := map[string]bool{}
	for _, m := range in.View.Voters() {
		about[m.Host] = true
	}
	if len(about) == 0 {
		for _, h := range in.View.Hosts {
			about[h.Name] = true
		}
	}
	if d.Plan != nil {
		about[d.Plan.Out], about[d.Plan.In], about[d.Plan.Regrade] = true, true, true
	}
	if op := openOf(in, d); op != nil {
		for _, host := range op.About() {
			about[host] = true
		}
	}
	for _, r := range d.Refusals {
		for _, host := range strings.Split(r.Subject, ",") {
			about[host] = true
		}
	}
	return about
}

// rolesOf has no standbys while the members are not known.
func rolesOf(v membership.View) map[string]string {
	roles := map[string]string{}
	for _, h := range v.Hosts {
		if v.Error == "" {
			roles[h.Name] = "standby"
		}
	}
	for _, m := range v.Members {
		switch {
		case m.Learner:
			roles[m.Host] = "learner"
		case m.ID == v.Leader():
			roles[m.Host] = "leader"
		default:
			roles[m.Host] = "voter"
		}
	}
	return roles
}

// patch is the merge patch that makes a Node say s; a zero s says nothing.
func (s said) patch() map[string]any {
	annotations := map[string]any{}
	for _, name := range Reported() {
		if text, ok := s.text[name]; ok {
			annotations[name] = text
		} else {
			annotations[name] = nil
		}
	}
	if s.text != nil {
		annotations[AsOf] = s.at.UTC().Format(time.RFC3339)
	}
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

// stands reports whether the Node has exactly the annotations that were written.
func (s said) stands(node meta.PartialObjectMetadata) bool {
	for _, name := range Reported() {
		got, has := node.Annotations[name]
		want, wanted := s.text[name]
		if name == AsOf {
			want, wanted = s.at.UTC().Format(time.RFC3339), s.text != nil
		}
		if has != wanted || got != want {
			return false
		}
	}
	return true
}
