package record

import (
	"errors"
	"fmt"
	"slices"

	"suffrage/membership"
	"suffrage/mesh-tests/history"
)

// Judge says all that was not as it has to be, nil for nothing.
func (r *Recording) Judge() error {
	return errors.Join(r.judgeWrites(), history.Check(r.History), history.CheckReads(r.History), r.judgeMembers(), r.judgeDecisions(), r.judgeOperations())
}

func (r *Recording) judgeWrites() error {
	if r.Writes.Acknowledged == 0 {
		return errors.New("no write was acknowledged: nothing was proven")
	}
	failed := r.Writes.Failed
	for _, f := range r.Writes.Failures {
		if r.Rules.excused(f) {
			failed--
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d writes failed while there was a quorum: no try within ten seconds carried them out", failed)
	}
	return nil
}

// judgeOperations looks whether each did what its outcome says.
func (r *Recording) judgeOperations() error {
	var errs []error
	for _, op := range r.Operations {
		has := func(members []string, id string) bool { return id != "" && slices.Contains(members, id) }
		switch op.Outcome {
		case membership.Completed:
			if op.Out != "" && has(op.MembersAfter, op.OutMember) {
				errs = append(errs, fmt.Errorf("operation %s completed, and %s is still a member", op.ID, op.Out))
			}
			if op.In != "" && !has(op.MembersAfter, op.InMember) {
				errs = append(errs, fmt.Errorf("operation %s completed, and %s is no member", op.ID, op.In))
			}
			if op.Out != "" && op.In != "" && len(op.MembersBefore) != len(op.MembersAfter) {
				errs = append(errs, fmt.Errorf("operation %s: members %v, before %v", op.ID, op.MembersAfter, op.MembersBefore))
			}
		case membership.Undone:
			if op.TurnedBack == "" || !slices.Equal(op.MembersBefore, op.MembersAfter) {
				errs = append(errs, fmt.Errorf("operation %s undone (%s): members %v, before %v", op.ID, op.TurnedBack, op.MembersAfter, op.MembersBefore))
			}
		}
	}
	return errors.Join(errs...)
}
