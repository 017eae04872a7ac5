package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/membership"
)

// previousKey holds since when the present decision and its refusals have held.
// It is written when the decision changes, so that ages outlive the controller
// that saw them begin, and anybody can be told them.
const previousKey = "/suffrage/decision"

// LoadPrevious gives nil where no decision was written down yet. One that
// cannot be read counts as none: it holds ages, nothing that is acted on.
func LoadPrevious(ctx context.Context, kv clientv3.KV) (*membership.Previous, error) {
	g, err := kv.Get(ctx, previousKey)
	if err != nil {
		return nil, fmt.Errorf("etcd: read %s: %w", previousKey, err)
	}
	if len(g.Kvs) == 0 {
		return nil, nil
	}
	var p membership.Previous
	d := json.NewDecoder(bytes.NewReader(g.Kvs[0].Value))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, nil
	}
	return &p, nil
}

// SavePrevious writes it only while l still leads.
func SavePrevious(ctx context.Context, kv clientv3.KV, l Leadership, p membership.Previous) error {
	value, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("etcd: write %s: %w", previousKey, err)
	}
	t, err := kv.Txn(ctx).If(l.Held()).Then(clientv3.OpPut(previousKey, string(value))).Commit()
	if err != nil {
		return fmt.Errorf("etcd: write %s: %w", previousKey, err)
	}
	if !t.Succeeded {
		return fmt.Errorf("etcd: write %s: %w", previousKey, ErrLost)
	}
	return nil
}
