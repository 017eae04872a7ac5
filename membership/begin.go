package membership

import (
	"fmt"
	"slices"
	"strings"
)

// Begin is the operation that carries out a plan. The term is the Lease's, so
// that no two operations have one ID; inPeer is the peer URL that the newcomer
// will have.
func Begin(in Inputs, p Plan, term uint64, by, inPeer string) Operation {
	a := assess(in)
	op := Operation{
		ID:  fmt.Sprintf("%s-%d", strings.ToLower(in.Now.UTC().Format("20060102t150405")), term),
		Out: p.Out, In: p.In, OutMember: p.OutMember, InPeer: inPeer,
		By: by, Why: p.Why, Figures: p.Figures,
		ClusterID: in.View.ClusterID, Begun: in.Now,
	}
	for _, m := range in.View.Members {
		op.MembersBefore = append(op.MembersBefore, m.ID)
	}
	slices.Sort(op.MembersBefore)
	if w, ok := a.worstPair(); ok {
		op.WorstBefore = &w
	}
	return op
}

// End is the operation as history, once its last act is to finish it.
func End(in Inputs, op Operation, o Outcome) Operation {
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
