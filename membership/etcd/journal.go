package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/control"
)

// Journal is the operation under way, as JSON in the record of a Lease that is
// held, wherever that is kept.
type Journal struct{ held *lease.Held }

var _ control.Journal = Journal{}

// NewJournal is that of a Lease as lead got it.
func NewJournal(held *lease.Held) Journal { return Journal{held} }

// Save writes the operation down, nil for none.
func (j Journal) Save(ctx context.Context, op *membership.Operation) error {
	if op == nil {
		return j.held.Write(ctx, nil)
	}
	data, err := json.Marshal(op)
	if err != nil {
		return fmt.Errorf("etcd: write journal of operation %s: %w", op.ID, err)
	}
	return j.held.Write(ctx, data)
}

// Load is what was last known to be written, nil for none.
func (j Journal) Load() (*membership.Operation, error) { return readJournal(j.held.Journal()) }

// Check is asked right before each change.
func (j Journal) Check(ctx context.Context) error { return j.held.Check(ctx) }

// Term goes with every change.
func (j Journal) Term() uint64 { return uint64(j.held.Term()) }

func readJournal(data []byte) (*membership.Operation, error) {
	if len(data) == 0 {
		return nil, nil
	}
	op, err := readOperation(data)
	if err != nil {
		return nil, fmt.Errorf("etcd: the journal in the Lease cannot be read: %w: use the version of suffrage that wrote it", err)
	}
	return &op, nil
}
