package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Name of the Lease. There is one: a lock per kind of change would let two of
// them run at once.
const Name = "fleet-regrade"

// Version is one state of the record in a store: etcd's mod revision, or
// Kubernetes' resourceVersion. No two writes have the same one. It is empty
// where there is no record.
type Version string

// Seen is what a store holds.
type Seen struct {
	// Record is zero where there is none, and Version then empty.
	Record  Record
	Version Version
	// Floor is a number that no Term written so far is above, and that the next
	// write raises: etcd's revision. It is how Terms go on growing after somebody
	// deleted the record or wrote a lower Term into it. A store whose revisions
	// went back (a restore without raising them) cannot promise that.
	Floor Term
}

// Store keeps the record. Both calls end with their context.
type Store interface {
	// Get reads what is stored at some instant during the call, never an older
	// state. The error is ErrUnreadable where there is something that no Lease
	// wrote.
	Get(ctx context.Context) (Seen, error)
	// Put writes r, and gives its version, if the stored version is still old.
	// The error is ErrConflict where it is not, and ErrUnknown where r may have
	// been written or may still be. With any other error it was not and will not.
	Put(ctx context.Context, r Record, old Version) (Version, error)
}

var (
	// ErrConflict means that the record is not the one that the writer read.
	// Nothing was written.
	ErrConflict = errors.New("lease: somebody else wrote the record")
	// ErrUnknown means that nobody knows whether a write was done. Read again.
	ErrUnknown = errors.New("lease: it is unknown whether the record was written")
	// ErrUnreadable means that the record was edited by hand or written by
	// another version. Nothing but a person may replace it: it may hold the
	// journal of an operation.
	ErrUnreadable = errors.New("lease: the record cannot be read")
	// ErrHeld is what a HeldError is.
	ErrHeld = errors.New("lease: held by somebody else")
	// ErrLost is what a LostError is.
	ErrLost = errors.New("lease: lost")
)

// HeldError is why the Lease was not had in time: somebody else holds it.
type HeldError struct {
	Record Record
	Err    error // why the wait ended
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lease: held by %s since %s for %q, term %d: %v", e.Record.Holder, e.Record.Since.Format(time.RFC3339), e.Record.Purpose, e.Record.Term, e.Err)
}

func (e *HeldError) Unwrap() []error { return []error{ErrHeld, e.Err} }

// LostError is how a holder lost the Lease. What it was doing goes on with the
// next holder, who has the journal.
type LostError struct {
	Holder Holder
	Term   Term
	Reason string
	// Found is what was in the store instead; nil where that was not what showed
	// it, and zero where there was none.
	Found *Record
}

func (e *LostError) Error() string {
	return fmt.Sprintf("lease: %s lost term %d: %s", e.Holder, e.Term, e.Reason)
}

func (e *LostError) Unwrap() error { return ErrLost }

// instead says how what was found differs from what the holder left.
func instead(mine, found Record) string {
	switch h := found.Holder; {
	case found.Term == 0:
		return "the record was deleted"
	case h == mine.Holder:
		return "somebody else changed the record"
	case h == Holder{}:
		return "somebody else released it"
	default:
		return fmt.Sprintf("%s holds it since %s for %q, term %d", h, found.Since.Format(time.RFC3339), found.Purpose, found.Term)
	}
}
