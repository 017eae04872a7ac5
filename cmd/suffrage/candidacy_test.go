package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/apiserver"
	"suffrage/membership/etcd"
)

// A controller that its API server does not answer waits outside the election while
// somebody else stands, and leads where nobody does.
func TestCandidacy(t *testing.T) {
	away := &apiserver.Error{Server: "https://127.0.0.1:6443", Operation: "read Node h2", Err: &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: errors.New("connection refused")}}
	answers := func(after time.Duration) func(context.Context) error {
		began := time.Now()
		return func(context.Context) error {
			if time.Since(began) < after {
				return away
			}
			return nil
		}
	}
	nobody := func(after time.Duration) func(context.Context) error {
		began := time.Now()
		return func(context.Context) error {
			if time.Since(began) < after {
				return nil
			}
			return etcd.ErrNoLeader
		}
	}
	const never = 1000 * time.Hour
	for _, tc := range []struct {
		name             string
		api              bool
		answers, nobody  time.Duration
		from, to, ending time.Duration
		warned           int
	}{
		{"no API server is asked", false, 0, never, 0, 0, 0, 0},
		{"it answers", true, 0, never, 0, 0, 0, 0},
		{"nobody leads", true, never, 0, 0, 0, 0, 0},
		{"it answers again", true, time.Hour, never, time.Hour, time.Hour + askEvery, 0, 1},
		{"the leader ends", true, never, time.Hour, time.Hour, time.Hour + askEvery, 0, 1},
		{"it is told to end", true, never, never, time.Minute, time.Minute, time.Minute, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said strings.Builder
				c := candidacy{leads: nobody(tc.nobody), log: slog.New(slog.NewTextHandler(&said, nil))}
				if tc.api {
					c.answers = answers(tc.answers)
				}
				ctx := t.Context()
				if tc.ending > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.ending)
					defer cancel()
				}
				began := time.Now()
				err := c.wait(ctx)
				if took := time.Since(began); took < tc.from || took > tc.to || (err != nil) != (tc.ending > 0) {
					t.Errorf("stood after %s (%v), want after %s to %s", took, err, tc.from, tc.to)
				}
				if n := strings.Count(said.String(), "not standing"); n != tc.warned {
					t.Errorf("said %d times, want %d: %s", n, tc.warned, &said)
				}
			})
		})
	}
}
