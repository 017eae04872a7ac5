package membership

import (
	"fmt"
	"slices"
	"strings"
)

// Begin is the operation that carries out a plan. The term is the Lease's, so
// that no two operations have one ID; inPeer is the peer URL that the newcomer
// will have, if there is one. It is by whoever asked for it, else by the one given:
// nobody asks for a step up who waits for a number of voters.
func Begin(in Inputs, p Plan, term uint64, by, inPeer string) Operation {
	a := assess(in)
	if q := in.Request; q != nil && (q.Target == 0 || p.Regrade == "") {
		by = q.By
	}
	op := Operation{
		ID:  fmt.Sprintf("%s-%d", strings.ToLower(in.Now.UTC().Format("20060102t150405")), term),
		Out: p.Out, In: p.In, Dead: p.Dead, OutMember: p.OutMember, InPeer: inPeer,
		Regrade: p.Regrade, To: p.To, Member: p.Member,
		By: by, Why: p.Why, Figures: p.Figures,
		ClusterID: in.View.ClusterID, Begun: in.Now, Term: term,
	}
	for _, m := range in.View.Members {
		op.MembersBefore = append(op.MembersBefore, m.ID)
	}
	slices.Sort(op.MembersBefore)
	if op.In == "" {
		op.InPeer = ""
	}
	if op.Regrade == "" {
		op.WorstBefore = a.worstPair()
	}
	return op
}

// End is the operation as history, once its last act is to finish it. One that
// has ended stays as it was recorded.
func End(in Inputs, op Operation, o Outcome) Operation {
	if !op.Open() {
		return op
	}
	op = *op.clone()
	op.at("record", in.Now).Ended = in.Now
	op.Outcome, op.Ended = o, in.Now
	op.MembersAfter = nil
	for _, m := range in.View.Members {
		op.MembersAfter = append(op.MembersAfter, m.ID)
	}
	slices.Sort(op.MembersAfter)
	return op
}

// Measured fills in what the worst round trip was after an operation. When it
// ends nobody knows, since samples from before a change of members do not
// count; so it is asked again in later rounds, and ok is true once, when every
// pair of the voters that it left has a full window.
func Measured(in Inputs, op Operation) (measured Operation, ok bool) {
	if op.Outcome != Completed || op.Regrade != "" || op.WorstAfter != nil || in.View.unusable() != "" || in.View.ClusterID != op.ClusterID {
		return op, false
	}
	var ids []string
	for _, m := range in.View.Members {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	if !slices.Equal(ids, op.MembersAfter) {
		return op, false
	}
	op.WorstAfter = assess(in).worstPair()
	return op, op.WorstAfter != nil
}
