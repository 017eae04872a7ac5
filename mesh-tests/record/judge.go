package record

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/history"
)

// Judge says all that was not as it has to be, nil for nothing.
func (r *Recording) Judge() error {
	return errors.Join(r.judgeWrites(), history.Check(r.History), r.judgeMembers(), r.judgeOperations())
}

func (r *Recording) judgeWrites() error {
	switch {
	case r.Writes.Acknowledged == 0:
		return errors.New("no write was acknowledged: nothing was proven")
	case r.Writes.Failed > 0 && !r.Rules.Outage:
		return fmt.Errorf("%d writes failed: no try within ten seconds carried them out", r.Writes.Failed)
	}
	return nil
}

// judgeMembers looks at every member list that was seen, for what no
// membership may ever be.
func (r *Recording) judgeMembers() error {
	if len(r.Members) == 0 {
		return errors.New("no member list was seen: nothing was proven")
	}
	var errs []error
	var clusters []string
	said := map[string]bool{}
	once := func(at time.Duration, text string) {
		if !said[text] {
			said[text] = true
			errs = append(errs, fmt.Errorf("%v: %s", at.Round(time.Millisecond), text))
		}
	}
	for _, m := range r.Members {
		if n := len(m.Voters); n < r.Rules.Least || n > r.Rules.Most {
			once(m.At, fmt.Sprintf("%d voters, allowed: %d to %d: %v", n, r.Rules.Least, r.Rules.Most, m.Voters))
		}
		if len(m.Learners) > 1 {
			once(m.At, fmt.Sprintf("%d learners: %v", len(m.Learners), m.Learners))
		}
		if n := len(clusters); n == 0 || clusters[n-1] != m.Cluster {
			if slices.Contains(clusters, m.Cluster) {
				once(m.At, fmt.Sprintf("cluster %s is back: two clusters answer", m.Cluster))
			}
			clusters = append(clusters, m.Cluster)
		}
	}
	if len(clusters) > r.Rules.Clusters {
		errs = append(errs, fmt.Errorf("%d clusters, allowed: %d: %v", len(clusters), r.Rules.Clusters, clusters))
	}
	return errors.Join(errs...)
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
