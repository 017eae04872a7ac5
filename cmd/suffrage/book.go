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
	k3s     bool             // removals are asked for on Nodes
	leader  *etcd.Leadership // nil: read only
	timeout time.Duration    // of one call
}

// recent is how many ended operations a decision looks at.
const recent = 50

func (b book) Read(ctx context.Context) (e control.Entries, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	// Before what an API server has to answer: without it one gives way to another.
	if e.Controllers, err = etcd.Controllers(ctx, b.kv); err != nil {
		return e, err
	}
	look, err := marks(ctx, b.kv, b.nodes)
	if err != nil {
		return e, err
	}
	e.Marks, e.Nodes, e.Foreign = look.Marks, look.States, look.Foreign
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
	if e.Removals, err = b.removals(ctx); err != nil {
		return e, err
	}
	e.Operations, err = etcd.Operations(ctx, b.kv, recent)
	return e, err
}

func (b book) removals(ctx context.Context) ([]membership.Removal, error) {
	if b.k3s {
		return b.nodes.Removals(ctx)
	}
	return etcd.Removals(ctx, b.kv)
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
		// Who leads makes a time that is still to come its now, and writes that down.
		// Here it would be now at every look until then, and nothing would ever count:
		// it is left out, as where no controller has written one yet.
		if old.ClusterID == "" || old.Since.After(v.At) {
			v.MembershipSince = time.Time{}
		}
		if old.Changed.After(v.At) {
			v.MembershipChanged = time.Time{}
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
