package demo

import (
	"context"
	"fmt"
	"time"

	"suffrage/membership"
)

// write starts the client that writes all the time, where the controllers act.
func (s *story) write(ctx context.Context) error {
	if !s.o.Active {
		return nil
	}
	client, err := s.o.Client(s.fleet)
	if err != nil {
		return err
	}
	w := &writer{client: client}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan Writes, 1)
	go func() { done <- w.Run(ctx) }()
	s.writing = func() Writes {
		cancel()
		seen := <-done
		_ = client.Close() // nothing is under way any more
		return seen
	}
	s.tell.say("a client writes all the time from here on")
	return nil
}

// stopWriting takes what the client saw. Calling it again changes nothing.
func (s *story) stopWriting() {
	if s.writing == nil {
		return
	}
	s.writes = s.writing()
	s.writing = nil
	s.tell.say("the client wrote %d times, %d failed; the slowest took %v", s.writes.Writes, s.writes.Failed, s.writes.Slowest.Round(time.Millisecond))
}

// watch looks whether an operation has ended, once.
func (s *story) watch(ctx context.Context) error {
	if !s.o.Active || s.ended != nil {
		return nil
	}
	op, err := s.o.Ended(ctx, s.fleet)
	if err != nil || op == nil {
		return nil // etcd is asked again in a moment
	}
	s.ended = op
	s.stopWriting()
	s.tell.say("%s", ending(*op))
	s.tell.block(durations(*op))
	return nil
}

func ending(op membership.Operation) string {
	text := fmt.Sprintf("operation %s: %s %s in %v", op.ID, op.Title(), op.Outcome, op.Ended.Sub(op.Begun).Round(100*time.Millisecond))
	if op.TurnedBack != "" {
		text += ": " + op.TurnedBack
	}
	return text
}

func durations(op membership.Operation) string {
	text := ""
	for _, s := range op.Steps {
		text += fmt.Sprintf("         %-10s %v\n", s.Name, s.Ended.Sub(s.Begun).Round(10*time.Millisecond))
	}
	return text
}
