package membership

import (
	"slices"

	"suffrage/fitness"
)

// Qualification says whether a host could be given a vote now, or is good for the one
// that it has, by all that is measured of it. Whether the owner lets it vote is the word
// of its mark, and whether anything is to be moved is Decide's: neither is asked here.
type Qualification struct {
	Host      string         `json:"host"`
	Role      string         `json:"role"`
	Mark      string         `json:"mark"` // pinned, eligible, ineligible or unmanaged; "not known" without a member list
	Status    fitness.Status `json:"status"`
	Qualifies bool           `json:"qualifies"`
	// Refusal is the first thing in the way; nil where nothing is.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Qualify judges every host, in the order of their names. A standby is asked what a
// candidate is asked, with nobody leaving; a voter, to answer and to be within a voter's
// limits with full windows. Without a member list nobody qualifies.
func Qualify(in Inputs) []Qualification {
	a := assess(in)
	out := make([]Qualification, 0, len(a.names))
	unread, voters := in.View.unusable(), guardVoters(in)
	for _, name := range a.names {
		h, v := a.hosts[name], a.verdict(name)
		q := Qualification{Host: name, Role: in.View.Role(name), Mark: h.Mark.Word(), Status: v.Status}
		switch {
		case unread != "":
			r := hold(MembershipUnknown, "", unread, "lifts when it can be read; `suffrage status` shows which voters answer")
			q.Refusal, q.Mark = &r, "not known" // marks lie in etcd too
		case a.isVoter(name):
			q.Refusal = a.falls(v, voters)
		default:
			_, q.Refusal = a.stand(name, a.vacancy(fitness.Suspect{}))
		}
		if q.Qualifies = q.Refusal == nil; !q.Qualifies {
			q.Refusal.Since = in.Now // what was before, this look has not seen
		}
		out = append(out, q)
	}
	return out
}

// falls is what a voter falls short of, nil when it is well.
func (a *assessment) falls(v fitness.Verdict, said []Refusal) *Refusal {
	if i := slices.IndexFunc(said, func(r Refusal) bool { return r.Subject == v.Host }); i >= 0 {
		return &said[i]
	}
	if h := a.hosts[v.Host]; !h.Reachable {
		r := hold(SamplesMissing, v.Host, "its agent does not answer: "+h.Error, "lifts when it answers")
		return &r
	}
	if missing := a.samples([]fitness.Verdict{v}, nil); len(missing) > 0 {
		return &missing[0]
	}
	if v.Status == fitness.Unfit {
		r := hold(NoCandidate, v.Host, v.String(), "lifts when it is fit again")
		return &r
	}
	return nil
}
