package etcd

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease"
	leaseetcd "suffrage/lease/etcd"
	"suffrage/membership"
)

// Lease is the shared Lease as transactions of this etcd see it, wherever its
// record is read and written.
type Lease struct {
	lease.Store
	// Key is there while the record is, and its mod revision is the record's
	// Version: so whoever lost the Lease writes nothing more. An API server over
	// this etcd has such a key for each object.
	Key string
}

// OwnLease is the one whose record is a key of Suffrage's.
func OwnLease(kv clientv3.KV) Lease { return Lease{leaseetcd.New(kv), leaseetcd.Key} }

// Right is that of whoever holds the Lease with this Term. It compares the
// version of the record that it read, so a renewal in between makes the
// transaction fail once; it is then tried again.
func (l Lease) Right(term lease.Term) Right {
	return func(ctx context.Context) (clientv3.Cmp, error) {
		seen, err := l.Get(ctx)
		if err != nil {
			return clientv3.Cmp{}, err
		}
		if r := seen.Record; r.Term != term || r.Holder == (lease.Holder{}) {
			return clientv3.Cmp{}, fmt.Errorf("%w: term %d is over; the record has term %d, holder %q", lease.ErrLost, term, r.Term, r.Holder.Host)
		}
		return l.same(seen)
	}
}

// same compares the record with the one that was seen.
func (l Lease) same(seen lease.Seen) (clientv3.Cmp, error) {
	rev, err := strconv.ParseInt(string(seen.Version), 10, 64)
	if err != nil {
		return clientv3.Cmp{}, fmt.Errorf("etcd: version %q of the Lease is not one of etcd's", seen.Version)
	}
	return clientv3.Compare(clientv3.ModRevision(l.Key), "=", rev), nil
}

// Open reads the operation under way from the record, nil when there is none,
// and the record itself.
func (l Lease) Open(ctx context.Context) (*membership.Operation, lease.Record, error) {
	seen, err := l.Get(ctx)
	if err != nil {
		return nil, lease.Record{}, err
	}
	op, err := readJournal(seen.Record.Journal)
	return op, seen.Record, err
}

// Here is an error unless this etcd has the Key: without it nothing could be
// written under the Lease, and each time it would look like a conflict.
func (l Lease) Here(ctx context.Context, kv clientv3.KV) error {
	g, err := kv.Get(ctx, l.Key, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("etcd: read %s: %w", l.Key, err)
	}
	if g.Count == 0 {
		return fmt.Errorf("etcd: there is a Lease, and no key %s: it is kept in another etcd than that of etcd.endpoints, or under another prefix", l.Key)
	}
	return nil
}
