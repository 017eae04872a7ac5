package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Accept makes the record say that this cluster is the one that is meant, after
// a restore or a reset gave it a new ID. It is the owner's word, so it needs no
// leadership; a record that somebody changed in between is left alone.
func Accept(ctx context.Context, kv clientv3.KV, clusterID string, voters []string, now time.Time) error {
	g, err := kv.Get(ctx, recordKey)
	if err != nil {
		return fmt.Errorf("etcd: read %s: %w", recordKey, err)
	}
	var rev int64
	if len(g.Kvs) > 0 {
		rev = g.Kvs[0].ModRevision
	}
	next, _ := Next(Record{}, clusterID, voters, now)
	next.Changed = now // everything measured before is of another cluster
	value, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("etcd: write %s: %w", recordKey, err)
	}
	t, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(recordKey), "=", rev)).Then(clientv3.OpPut(recordKey, string(value))).Commit()
	if err != nil {
		return fmt.Errorf("etcd: write %s: %w", recordKey, err)
	}
	if !t.Succeeded {
		return ErrConflict
	}
	return nil
}
