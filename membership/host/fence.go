package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"suffrage/membership"
)

const (
	fenceFile  = "fence.json"
	startsFile = "starts.json"
)

// fence is the content of the fence file. That the file exists is what fences.
type fence struct {
	// Operation is empty where the member itself found that it was removed.
	Operation string    `json:"operation"`
	Term      uint64    `json:"term"`
	Member    string    `json:"member,omitempty"`
	At        time.Time `json:"at"`
	// Starts and UnitStarts are the counts of starts at the fence: the member's
	// own and the unit's.
	Starts     int `json:"starts"`
	UnitStarts int `json:"unit_starts"`
	// Invocation names the unit's newest start at the fence.
	Invocation string `json:"invocation,omitempty"`
	// Prepared: suffrage standby prepare put it up, on a host that had nothing of any
	// cluster.
	Prepared bool `json:"prepared,omitempty"`
	// Proven is when a start was tried and refused; zero before.
	Proven time.Time `json:"proven,omitzero"`
}

// starts counts how often the member was started here.
type starts struct {
	Count int `json:"count"`
}

// FencedError says which fence forbids a start. It is ErrFenced.
type FencedError struct {
	// Path is the file.
	Path string
	// Why says who put it up, or why that cannot be told.
	Why string
	// Prepared: it is that of a standby that was never anything else.
	Prepared bool
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("%v: %s (%s); suffrage lifts it when this host is given a vote again", ErrFenced, e.Why, e.Path)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// Fenced gives a *FencedError while the host whose data directory this is must
// not start its member, else nil. What cannot be read counts as a fence.
func Fenced(data string) error {
	d := files{path: data}
	_, err := os.Lstat(d.file(fenceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	e := &FencedError{Path: d.file(fenceFile)}
	var f fence
	if err == nil {
		_, err = d.read(fenceFile, &f)
	}
	if err != nil {
		e.Why = err.Error()
		return e
	}
	at := f.At.UTC().Format(time.RFC3339)
	switch {
	case f.Operation != "":
		e.Why = fmt.Sprintf("by operation %s, term %d, at %s", f.Operation, f.Term, at)
	case f.Member != "":
		e.Why = fmt.Sprintf("its member %s was removed from the cluster, and found out at %s", f.Member, at)
	case f.Prepared:
		e.Why, e.Prepared = "by suffrage standby prepare at "+at, true
	default:
		e.Why = "put up by hand"
	}
	return e
}

// Begin counts a start of the member, or gives a *FencedError, or ErrUnfinished.
// The member calls it before it opens its datastore.
func Begin(ctx context.Context, data string) error {
	if err := Fenced(data); err != nil {
		return err // without a write: it may be tried for ever
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("host: make the data directory: %w", err)
	}
	d := files{path: data}
	unlock, err := d.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := Fenced(data); err != nil {
		return err
	}
	if err := d.finished(); err != nil {
		return err
	}
	var n starts
	if _, err := d.read(startsFile, &n); err != nil {
		return err
	}
	n.Count++
	return d.write(startsFile, n)
}

// fence puts the fence up and proves it.
func (s *Server) fence(ctx context.Context, o Order) error {
	f, err := s.putFence(ctx, o)
	if err != nil {
		return err
	}
	if err := s.tryFence(ctx); err != nil {
		return err
	}
	if !f.Proven.IsZero() {
		return nil // what was counted when it was proven stays: it shows a start made since
	}
	unit, err := s.o.Unit.State(ctx)
	if err != nil {
		return failure(membership.FenceNotProven, "the fence is up, and what runs cannot be told: %w", err)
	}
	f.UnitStarts, f.Invocation = unit.Starts, unit.Invocation
	f.Proven = time.Now().UTC()
	return s.files.write(fenceFile, f)
}

// tryFence tries a start that the fence has to refuse.
func (s *Server) tryFence(ctx context.Context) error {
	before, err := s.o.Unit.State(ctx)
	if err != nil {
		return failure(membership.FenceNotProven, "the fence is up, and what runs cannot be told: %w", err)
	}
	s.files.at("start", "unit")
	switch err := s.o.Unit.Start(ctx); {
	case err == nil && before.Running:
		return failure(membership.FenceNotProven, "the fence is up, and the unit did not refuse a start")
	case err == nil:
		return failure(membership.FenceNotProven, "the fence is up, and the unit started the member all the same (%w)", errors.Join(errors.New("it was stopped again"), s.o.Unit.Stop(ctx)))
	case !errors.Is(err, ErrFenced):
		return failure(membership.FenceNotProven, "the fence is up, and a start that was tried ended otherwise: %w", err)
	}
	return nil
}

// putFence writes the fence, or again one that was not proven: whoever wrote it
// may have died before it was on the disk.
func (s *Server) putFence(ctx context.Context, o Order) (fence, error) {
	unlock, err := s.files.lock(ctx)
	if err != nil {
		return fence{}, err
	}
	defer unlock()
	var f fence
	there, err := s.files.read(fenceFile, &f)
	if err != nil || there && !f.Proven.IsZero() {
		return f, err
	}
	if !there || f.Operation == "" { // or written by hand: it knows of no start before it
		var n starts
		if _, err := s.files.read(startsFile, &n); err != nil {
			return f, err
		}
		f = fence{Operation: o.Operation, Term: o.Term, Member: o.Member, At: time.Now().UTC(), Starts: n.Count}
	}
	return f, s.files.write(fenceFile, f)
}

// liftFence removes the fence.
func (s *Server) liftFence(ctx context.Context) error {
	unlock, err := s.files.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.files.remove(fenceFile)
}

// unfence lifts the fence. A voter that died behind it is started again.
func (s *Server) unfence(ctx context.Context) error {
	r, err := s.role()
	if err != nil {
		return err
	}
	if r.Role == Voter { // which a boot behind the fence has left with K3s's agent
		if err := s.o.K3s.stopAgent(ctx, s.files); err != nil {
			return err
		}
	}
	if err := s.liftFence(ctx); err != nil || r.Role != Voter {
		return err
	}
	s.files.at("start", "unit")
	if err := s.o.Unit.Start(ctx); err != nil {
		return fmt.Errorf("the fence is lifted, and the member does not start: %w", err)
	}
	return nil
}
