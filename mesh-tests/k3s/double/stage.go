package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// errAtOnce ends a stage whose parts must not take their time.
var errAtOnce = errors.New("at once")

// stage is some parts that run side by side; the server's stages end one after
// the other.
type stage struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	parts  sync.WaitGroup
	failed chan<- error
}

func newStage(failed chan<- error) *stage {
	s := &stage{failed: failed}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// start runs a part. That it ends with an error ends the server.
func (s *stage) start(name string, part func(context.Context) error) {
	s.parts.Go(func() {
		if err := part(s.ctx); err != nil && s.ctx.Err() == nil {
			select {
			case s.failed <- fmt.Errorf("%s: %w", name, err):
			default: // another part was first
			}
		}
	})
}

func (s *stage) end(cause error) {
	s.cancel(cause)
	s.parts.Wait()
}
