package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/membership"
)

const (
	hostsPrefix = "/suffrage/hosts/"
	markSuffix  = "/mark"
	maxMarks    = 2000
	maxMark     = 4 << 10 // bytes of one mark
)

// ErrConflict means that somebody else wrote the same key at the same time,
// several times over. Nothing was written.
var ErrConflict = errors.New("etcd: somebody else keeps changing this; run it again")

// Marks reads what the owner says of all hosts, by host name. A mark that
// cannot be read is an error that names its key; the others are still given,
// for display.
func Marks(ctx context.Context, kv clientv3.KV) (map[string]membership.Mark, error) {
	r, err := kv.Get(ctx, hostsPrefix, clientv3.WithPrefix(), clientv3.WithLimit(maxMarks))
	if err != nil {
		return nil, fmt.Errorf("etcd: read marks: %w", err)
	}
	if r.More {
		return nil, fmt.Errorf("etcd: read marks: more than %d keys under %s", maxMarks, hostsPrefix)
	}
	marks := map[string]membership.Mark{}
	var errs []error
	for _, kv := range r.Kvs {
		name, ok := strings.CutSuffix(strings.TrimPrefix(string(kv.Key), hostsPrefix), markSuffix)
		if !ok || strings.Contains(name, "/") {
			continue // something else about hosts, of another version
		}
		var m membership.Mark
		if err := strict(kv.Value, &m); err != nil {
			errs = append(errs, fmt.Errorf("etcd: mark at %s: %w: set it again with 'suffrage host'", kv.Key, err))
			continue
		}
		marks[name] = m
	}
	return marks, errors.Join(errs...)
}

// UpdateMark changes one host's mark, only if nobody changed it in between.
// change gets the present mark (the zero Mark where there is none) and gives
// the new one; an error of it ends the update. The caller knows that the host
// exists. An error that came after the write was sent leaves it unknown whether
// it was done: read the marks again.
func UpdateMark(ctx context.Context, kv clientv3.KV, host string, change func(membership.Mark) (membership.Mark, error)) (membership.Mark, error) {
	return update(ctx, kv, hostsPrefix+host+markSuffix, "mark of "+host, "suffrage host list", change)
}

// update changes the JSON value of one key, only if nobody changed it in
// between. Where there is none change gets the zero value, and so it does for one
// that cannot be read: this is how the owner repairs it.
func update[T any](ctx context.Context, kv clientv3.KV, key, what, look string, change func(T) (T, error)) (T, error) {
	var zero T
	for range 5 {
		r, err := kv.Get(ctx, key)
		if err != nil {
			return zero, fmt.Errorf("etcd: read %s: %w", what, err)
		}
		var old T
		var rev int64
		if len(r.Kvs) > 0 {
			rev = r.Kvs[0].ModRevision
			if strict(r.Kvs[0].Value, &old) != nil {
				old = zero
			}
		}
		next, err := change(old)
		if err != nil {
			return zero, err
		}
		value, err := json.Marshal(next)
		if err != nil {
			return zero, fmt.Errorf("etcd: write %s: %w", what, err)
		}
		if len(value) > maxMark {
			return zero, fmt.Errorf("etcd: %s is %d bytes; at most %d: shorten the reason", what, len(value), maxMark)
		}
		t, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).Then(clientv3.OpPut(key, string(value))).Commit()
		if err != nil {
			return zero, fmt.Errorf("etcd: write %s: %w: it may have been written all the same; look with '%s'", what, err, look)
		}
		if t.Succeeded {
			return next, nil
		}
	}
	return zero, ErrConflict
}
