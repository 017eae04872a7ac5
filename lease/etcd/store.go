// Package etcd keeps the Lease in one etcd key, as JSON.
//
// The key has no etcd lease under it: etcd would delete it when its holder went
// silent, and the journal with it. Expiry is judged by who watches (see package
// lease), so nothing else is needed. etcd's own lease would also be extended by
// every change of leader, and be refused under NOSPACE like the renewal itself.
package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"suffrage/lease"
)

// Key is where the record is.
const Key = "/suffrage/lease/" + lease.Name

// Store is the record in an etcd cluster.
type Store struct{ kv clientv3.KV }

// New uses a client, or part of one, which stays the caller's. It must not make
// writes again on its own; etcd's does so only for one that was never sent.
func New(kv clientv3.KV) *Store { return &Store{kv} }

// Get reads through a quorum.
func (s *Store) Get(ctx context.Context) (lease.Seen, error) {
	g, err := s.kv.Get(ctx, Key)
	if err != nil {
		return lease.Seen{}, fmt.Errorf("lease: read %s: %w", Key, err)
	}
	// A Term is at most the revision of its write (the read before gave a lower
	// one, and Term is one more), and a read through a quorum gives no lower
	// revision than any write before it.
	seen := lease.Seen{Floor: lease.Term(g.Header.Revision)}
	if len(g.Kvs) == 0 {
		return seen, nil
	}
	seen.Version = version(g.Kvs[0].ModRevision)
	if seen.Record, err = lease.Decode(g.Kvs[0].Value); err != nil {
		return lease.Seen{}, fmt.Errorf("%w: %s: %w: look with 'etcdctl get %[2]s'; deleting it also deletes the journal of an operation under way", lease.ErrUnreadable, Key, err)
	}
	return seen, nil
}

// Put writes in one transaction with the comparison of the version.
func (s *Store) Put(ctx context.Context, r lease.Record, old lease.Version) (lease.Version, error) {
	if err := r.Validate(); err != nil {
		return "", fmt.Errorf("lease: write %s: %w", Key, err)
	}
	var rev int64 // 0 compares equal where there is no key
	if old != "" {
		var err error
		if rev, err = strconv.ParseInt(string(old), 10, 64); err != nil || rev <= 0 {
			return "", fmt.Errorf("lease: write %s: version %q is not one of etcd's", Key, old)
		}
	}
	value, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("lease: write %s: %w", Key, err)
	}
	t, err := s.kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(Key), "=", rev)).Then(clientv3.OpPut(Key, string(value))).Commit()
	if err != nil {
		if !refused(err) {
			err = errors.Join(lease.ErrUnknown, err)
		}
		return "", fmt.Errorf("lease: write %s: %w", Key, err)
	}
	if !t.Succeeded {
		return "", fmt.Errorf("lease: write %s: %w", Key, lease.ErrConflict)
	}
	return version(t.Header.Revision), nil
}

func version(rev int64) lease.Version { return lease.Version(strconv.FormatInt(rev, 10)) }

// refused is whether etcd itself said no: no space, no right, too large. Any
// other error, such as a timeout or a change of leader, may come after the write
// was proposed, which then may still be done.
func refused(err error) bool {
	e, ok := errors.AsType[rpctypes.EtcdError](err)
	if !ok {
		return false
	}
	switch e.Code() {
	case codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	return false
}
