package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/membership"
)

const requestKey = "/suffrage/request"

// RequestedError is why a request was not put: there is one already.
type RequestedError struct{ There membership.Request }

func (e *RequestedError) Error() string {
	return "etcd: there is a request already: " + e.There.String()
}

// LoadRequest gives nil where there is none.
func LoadRequest(ctx context.Context, kv clientv3.KV) (*membership.Request, error) {
	g, err := kv.Get(ctx, requestKey)
	if err != nil {
		return nil, fmt.Errorf("etcd: read %s: %w", requestKey, err)
	}
	if len(g.Kvs) == 0 {
		return nil, nil
	}
	r, err := readRequest(g.Kvs[0].Value)
	if err != nil {
		return nil, fmt.Errorf("etcd: read %s: %w: if no other version of suffrage needs it, delete the key", requestKey, err)
	}
	return &r, nil
}

func readRequest(data []byte) (r membership.Request, err error) {
	if err := strict(data, &r); err != nil {
		return membership.Request{}, err
	}
	if err := r.Validate(); err != nil {
		return membership.Request{}, err
	}
	return r, nil
}

// PutRequest asks for something, unless something is asked for already: then the
// error is a RequestedError. Only a request for a number of voters may give way to
// it: see membership.Request.Displaces.
func PutRequest(ctx context.Context, kv clientv3.KV, r membership.Request) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("etcd: request: %w", err)
	}
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("etcd: write %s: %w", requestKey, err)
	}
	var rev int64
	for range 5 {
		t, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(requestKey), "=", rev)).
			Then(clientv3.OpPut(requestKey, string(value))).Else(clientv3.OpGet(requestKey)).Commit()
		if err != nil {
			return fmt.Errorf("etcd: write %s: %w: it may have been written all the same", requestKey, err)
		}
		if t.Succeeded {
			return nil
		}
		kvs := t.Responses[0].GetResponseRange().Kvs
		if rev = 0; len(kvs) == 0 {
			continue // it has just gone
		}
		there, err := readRequest(kvs[0].Value)
		switch {
		case err != nil:
			return fmt.Errorf("etcd: there is a request at %s already, and it cannot be read: %w", requestKey, err)
		case !r.Displaces(there):
			return &RequestedError{there}
		}
		rev = kvs[0].ModRevision
	}
	return ErrConflict
}

// ClearRequest takes away this very request, once it was taken up or refused;
// where it is gone, or another one is there, it does nothing.
func ClearRequest(ctx context.Context, kv clientv3.KV, right Right, r membership.Request) error {
	return rightly(ctx, kv, right, requestKey, func(value []byte) ([]clientv3.Op, error) {
		if value == nil {
			return nil, nil
		}
		there, err := readRequest(value)
		if err != nil {
			return nil, fmt.Errorf("etcd: read %s: %w", requestKey, err)
		}
		if !there.Same(r) {
			return nil, nil
		}
		return []clientv3.Op{clientv3.OpDelete(requestKey)}, nil
	})
}
