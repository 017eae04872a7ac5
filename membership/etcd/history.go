package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/control"
)

const (
	operationsPrefix = "/suffrage/operations/"
	// MaxOperations is how many ended operations are kept; the oldest go.
	MaxOperations = 200
	// maxOperation bounds one, in bytes: what the Lease's record can hold.
	maxOperation = lease.MaxJournal
	maxID        = 128 // bytes of an operation's ID
)

// ErrNoOperation means that no operation has that ID.
var ErrNoOperation = errors.New("etcd: no such operation")

// History keeps ended operations.
type History struct {
	kv    clientv3.KV
	right Right
}

var _ control.History = (*History)(nil)

// NewHistory uses a client, which stays the caller's.
func NewHistory(kv clientv3.KV, right Right) *History { return &History{kv, right} }

// Record keeps one operation, and lets go of the oldest beyond MaxOperations in
// the same transaction. Recording it again, by whoever resumes or once its last
// figures are there, replaces it unless it ended otherwise. The term is what the
// right stands for.
func (h *History) Record(ctx context.Context, _ uint64, op membership.Operation) error {
	if op.Open() || !validID(op.ID) {
		return fmt.Errorf("etcd: record operation %q: it has to have ended, and an ID of letters, digits and dashes", op.ID)
	}
	value, err := json.Marshal(op)
	if err != nil {
		return fmt.Errorf("etcd: record operation %s: %w", op.ID, err)
	}
	if len(value) > maxOperation {
		return fmt.Errorf("etcd: record operation %s: %d bytes; at most %d", op.ID, len(value), maxOperation)
	}
	key := operationsPrefix + op.ID
	err = rightly(ctx, h.kv, h.right, key, func(old []byte) ([]clientv3.Op, error) {
		// How it ended was said once and for all; figures may still come.
		if was, err := readOperation(old); string(old) == string(value) || old != nil && err == nil && was.Outcome != op.Outcome {
			return nil, nil
		}
		ops := []clientv3.Op{clientv3.OpPut(key, string(value))}
		if old != nil {
			return ops, nil
		}
		kept, err := h.kv.Get(ctx, operationsPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err != nil {
			return nil, err
		}
		// etcd takes 128 changes in one transaction; what is left goes next time.
		for i := 0; i < min(len(kept.Kvs)+1-MaxOperations, 100); i++ {
			ops = append(ops, clientv3.OpDelete(string(kept.Kvs[i].Key)))
		}
		return ops, nil
	})
	if err != nil {
		return fmt.Errorf("etcd: record operation %s: %w", op.ID, err)
	}
	return nil
}

func validID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// Operations reads the ended operations, the newest first, at most the given
// number. Those that cannot be read are an error that names their keys; the
// others are still given.
func Operations(ctx context.Context, kv clientv3.KV, most int) ([]membership.Operation, error) {
	g, err := kv.Get(ctx, operationsPrefix, clientv3.WithPrefix(), clientv3.WithLimit(int64(min(max(most, 1), MaxOperations))),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
	if err != nil {
		return nil, fmt.Errorf("etcd: read operations: %w", err)
	}
	var out []membership.Operation
	var errs []error
	for _, kv := range g.Kvs {
		op, err := readOperation(kv.Value)
		if err == nil && operationsPrefix+op.ID != string(kv.Key) {
			err = fmt.Errorf("it has the ID %q", op.ID)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("etcd: operation at %s: %w", kv.Key, err))
			continue
		}
		out = append(out, op)
	}
	return out, errors.Join(errs...)
}

// FindOperation reads one operation: that which is under way or an ended one.
func FindOperation(ctx context.Context, kv clientv3.KV, l Lease, id string) (membership.Operation, error) {
	if !validID(id) {
		return membership.Operation{}, fmt.Errorf("%w: %.60q is no ID", ErrNoOperation, id)
	}
	open, _, err := l.Open(ctx)
	if err == nil && open != nil && open.ID == id {
		return *open, nil
	}
	g, err := kv.Get(ctx, operationsPrefix+id)
	if err != nil {
		return membership.Operation{}, fmt.Errorf("etcd: read operation %s: %w", id, err)
	}
	if len(g.Kvs) == 0 {
		return membership.Operation{}, fmt.Errorf("%w: %s", ErrNoOperation, id)
	}
	op, err := readOperation(g.Kvs[0].Value)
	if err != nil {
		return membership.Operation{}, fmt.Errorf("etcd: operation at %s: %w", g.Kvs[0].Key, err)
	}
	return op, nil
}

func readOperation(data []byte) (op membership.Operation, err error) {
	if err := strictly(data, maxOperation, &op); err != nil {
		return membership.Operation{}, err
	}
	if !validID(op.ID) {
		return membership.Operation{}, fmt.Errorf("%.60q is no ID", op.ID)
	}
	return op, nil
}
