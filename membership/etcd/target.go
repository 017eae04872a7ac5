package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/membership"
)

// SetTarget writes the number of voters that the owner wants into the policy,
// and the request to go there, in one transaction: whoever reads the request
// before the policy never sees a request that the policy does not know of. It
// replaces a request for another number; any other is left alone, and the error
// is a RequestedError. With ask false there is nowhere to go, and no request
// stays.
func SetTarget(ctx context.Context, kv clientv3.KV, n Number, ask bool) error {
	request := clientv3.OpDelete(requestKey)
	if ask {
		q := membership.Request{Target: n.Value, By: n.By, At: n.At, Reason: n.Reason}
		if err := q.Validate(); err != nil {
			return fmt.Errorf("etcd: request: %w", err)
		}
		value, err := json.Marshal(q)
		if err != nil {
			return fmt.Errorf("etcd: write %s: %w", requestKey, err)
		}
		request = clientv3.OpPut(requestKey, string(value))
	}
	for range 5 {
		now, err := kv.Txn(ctx).Then(clientv3.OpGet(policyKey), clientv3.OpGet(requestKey)).Commit()
		if err != nil {
			return fmt.Errorf("etcd: read %s and %s: %w", policyKey, requestKey, err)
		}
		said, asked := now.Responses[0].GetResponseRange().Kvs, now.Responses[1].GetResponseRange().Kvs
		if err := forTarget(asked); err != nil {
			return err
		}
		policy, err := withTarget(said, n)
		if err != nil {
			return err
		}
		t, err := kv.Txn(ctx).If(unchanged(policyKey, said), unchanged(requestKey, asked)).Then(clientv3.OpPut(policyKey, policy), request).Commit()
		if err != nil {
			return fmt.Errorf("etcd: write %s and %s: %w: it may have been written all the same; look with 'suffrage target'", policyKey, requestKey, err)
		}
		if t.Succeeded {
			return nil
		}
	}
	return ErrConflict
}

// unchanged compares a key with what was read of it.
func unchanged(key string, read []*mvccpb.KeyValue) clientv3.Cmp {
	var rev int64 // 0 where there is none
	if len(read) > 0 {
		rev = read[0].ModRevision
	}
	return clientv3.Compare(clientv3.ModRevision(key), "=", rev)
}

// forTarget refuses to replace a request for anything else.
func forTarget(asked []*mvccpb.KeyValue) error {
	if len(asked) == 0 {
		return nil
	}
	there, err := readRequest(asked[0].Value)
	switch {
	case err != nil:
		return fmt.Errorf("etcd: there is a request at %s already, and it cannot be read: %w", requestKey, err)
	case there.Target == 0:
		return &RequestedError{there}
	}
	return nil
}

// withTarget is the policy with another number. One that cannot be read may say
// anything, a pause among it, so it is not written over.
func withTarget(said []*mvccpb.KeyValue, n Number) (string, error) {
	var p Policy
	var err error
	if len(said) > 0 {
		if p, err = readPolicy(said[0].Value); err != nil {
			return "", fmt.Errorf("etcd: read %s: %w: say it again, beginning with: suffrage mode dry-run", policyKey, err)
		}
	}
	p.Target = &n
	if err := p.Validate(); err != nil {
		return "", fmt.Errorf("etcd: policy: %w", err)
	}
	value, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("etcd: write %s: %w", policyKey, err)
	}
	if len(value) > maxMark {
		return "", fmt.Errorf("etcd: %s is %d bytes; at most %d: shorten the reason", policyKey, len(value), maxMark)
	}
	return string(value), nil
}
