package scenarios

import (
	"context"
	"fmt"
	"time"

	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// heldLease reads the Lease's record.
func (f *fleet) heldLease() (lease.Seen, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), lookLimit)
	defer cancel()
	return etcd.OwnLease(f.Client).Get(ctx)
}

// takeover does something to the host that holds the Lease and waits until another
// Term has it. It is an error where that came too early. The time is taken from
// when the record that was taken over was not yet written, on this machine's own
// clock, so the Lease has run that long at least, however busy the machine is.
func (f *fleet) takeover(from func(holder string) error) error {
	read := time.Now()
	first, err := f.heldLease()
	if err != nil {
		return err
	}
	done, last, before := false, first.Version, time.Time{}
	for began := time.Now(); time.Since(began) < far; time.Sleep(50 * time.Millisecond) {
		asked := time.Now()
		seen, err := f.heldLease()
		switch {
		case err != nil:
			continue
		case seen.Record.Term != first.Record.Term && !done:
			return fmt.Errorf("Term %d was over before anything was done to %s, who held the Lease", first.Record.Term, first.Record.Holder.Host)
		case seen.Record.Term != first.Record.Term:
			if ran := time.Since(before); ran < first.Record.Duration.Std() {
				return fmt.Errorf("%s took the Lease over after at most %v; it is held for %v", seen.Record.Holder.Host, ran, first.Record.Duration)
			}
			return nil
		case seen.Version != last:
			last, before = seen.Version, read
		}
		read = asked
		if !done && !before.IsZero() {
			done = true
			if err := from(first.Record.Holder.Host); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("nobody took the Lease over from %s", first.Record.Holder.Host)
}

// killedInTheMiddle asks for a swap, kills the controller that carries it out while
// four vote, and gives how the next one ended it, and whose it was that was killed.
func (f *fleet) killedInTheMiddle(out, in string) (op membership.Operation, killed string) {
	f.t.Helper()
	var term uint64
	done := f.during(fourVote, func(op membership.Operation) error {
		term = op.Term
		return f.takeover(func(holder string) error {
			killed = holder
			return f.Node(holder).Crash("controller")
		})
	})
	op = f.ask(out, in)
	if !done() {
		f.t.Fatal("it was over before a controller could be killed")
	}
	f.fault("the controller of "+killed+" was killed in the middle of a swap", nil)
	f.ended("it is started again", nil)
	if op.Term <= term || op.Resumed.IsZero() {
		f.fail("Term %d ended it, resumed %v; the controller was killed in Term %d", op.Term, op.Resumed, term)
	}
	return op, killed
}
