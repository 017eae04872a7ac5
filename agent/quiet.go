package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	quietFor = 10 * time.Minute
	quietMax = 256 // texts remembered
)

// quiet is a log handler for net/http's errors: a host that is not in the
// roster tries again every few seconds, and one line per ten minutes says it.
type quiet struct {
	slog.Handler
	said *said
}

type said struct {
	mu   sync.Mutex
	when map[string]time.Time
}

func newQuiet(h slog.Handler) *quiet {
	return &quiet{h, &said{when: map[string]time.Time{}}}
}

func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	text := remoteOf(strings.TrimSpace(r.Message))
	if strings.HasSuffix(text, ": EOF") || !q.said.first(text, r.Time) {
		return nil // EOF: somebody looked whether the port is open
	}
	n := slog.NewRecord(r.Time, r.Level, "connection refused or broken", r.PC)
	n.AddAttrs(slog.String("err", text))
	return q.Handler.Handle(ctx, n)
}

// first reports whether a text was not said lately.
func (s *said) first(text string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.when[text]; ok && now.Sub(t) < quietFor {
		return false
	}
	if len(s.when) >= quietMax {
		clear(s.when) // rather say something twice than grow
	}
	s.when[text] = now
	return true
}
