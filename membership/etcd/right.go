package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Right gives the condition under which somebody may write, as things are now:
// a transaction with it is made only if nothing of that changed in between. The
// error is final where the right was lost.
type Right func(ctx context.Context) (clientv3.Cmp, error)

// Right is that of the controller which leads.
func (l Leadership) Right() Right {
	return func(context.Context) (clientv3.Cmp, error) { return l.Held(), nil }
}

// rightly makes one change of one key: next gets the present value (nil where
// there is none) and gives what is to be done about it, nothing when it is so
// already. It is done only if the key is still the same and the right still
// stands; a change of either is looked at again, several times.
func rightly(ctx context.Context, kv clientv3.KV, right Right, key string, next func(value []byte) ([]clientv3.Op, error)) error {
	for range 5 {
		var conditions []clientv3.Cmp
		if right != nil {
			held, err := right(ctx)
			if err != nil {
				return err
			}
			conditions = append(conditions, held)
		}
		g, err := kv.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("etcd: read %s: %w", key, err)
		}
		var value []byte
		var rev int64
		if len(g.Kvs) > 0 {
			// An empty value is there all the same.
			value, rev = append([]byte{}, g.Kvs[0].Value...), g.Kvs[0].ModRevision
		}
		ops, err := next(value)
		if err != nil || len(ops) == 0 {
			return err
		}
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", rev))
		t, err := kv.Txn(ctx).If(conditions...).Then(ops...).Commit()
		if err != nil {
			return fmt.Errorf("etcd: write %s: %w: it may have been written all the same", key, err)
		}
		if t.Succeeded {
			return nil
		}
	}
	return fmt.Errorf("etcd: write %s: %w", key, ErrConflict)
}
