package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/membership"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/membership/kube"
)

// book keeps marks, the recorded membership and the ages of the decision in
// etcd. Only a leader writes.
type book struct {
	kv      clientv3.KV
	nodes   *kube.Nodes      // nil: marks are in etcd only
	leader  *etcd.Leadership // nil: read only
	timeout time.Duration    // of one call
}

// recent is how many ended operations a decision looks at.
const recent = 50

func (b book) Read(ctx context.Context) (e control.Entries, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	if e.Marks, e.Foreign, err = marks(ctx, b.kv, b.nodes); err != nil {
		return e, err
	}
	// Before the policy: a number of voters is written to both at once, and one that
	// the policy does not know yet would be refused.
	if e.Request, err = etcd.LoadRequest(ctx, b.kv); err != nil {
		return e, err
	}
	said, err := etcd.LoadPolicy(ctx, b.kv)
	if err != nil {
		return e, err
	}
	e.Say = said.Fill
	if e.Removals, err = etcd.Removals(ctx, b.kv); err != nil {
		return e, err
	}
	if e.Controllers, err = etcd.Controllers(ctx, b.kv); err != nil {
		return e, err
	}
	e.Operations, err = etcd.Operations(ctx, b.kv, recent)
	return e, err
}

func (b book) Membership(ctx context.Context, v *membership.View) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	old, err := etcd.LoadRecord(ctx, b.kv)
	if err != nil {
		return err
	}
	var voters []string
	for _, m := range v.Voters() {
		voters = append(voters, m.ID)
	}
	next, changed := etcd.Next(old, v.ClusterID, voters, v.At)
	v.RecordedClusterID, v.MembershipSince, v.MembershipChanged = next.ClusterID, next.Since, next.Changed
	if b.leader == nil {
		if old.ClusterID == "" {
			// No controller has ever written one: nobody saw a change.
			v.MembershipSince = time.Time{}
		}
		return nil
	}
	if !changed {
		return nil
	}
	return etcd.SaveRecord(ctx, b.kv, *b.leader, next)
}

func (b book) Previous(ctx context.Context) (*membership.Previous, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return etcd.LoadPrevious(ctx, b.kv)
}

func (b book) Remember(ctx context.Context, p membership.Previous) error {
	if b.leader == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return etcd.SavePrevious(ctx, b.kv, *b.leader, p)
}
