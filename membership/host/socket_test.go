package host

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
)

func serveUnit(t *testing.T, u Unit) Socket {
	t.Helper()
	path := filepath.Join(t.TempDir(), "u")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ServeUnit(ctx, l, u) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return Socket(path)
}

func TestSocketIsTheUnit(t *testing.T) {
	m := newMachine(t).withDatastore()
	u := serveUnit(t, m)
	for range 2 {
		if err := u.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := u.State(t.Context()); got != (UnitState{Running: true, Starts: 1}) || err != nil {
		t.Errorf("%+v %v; one that runs is not started again", got, err)
	}
	s := m.server()
	s.o.Unit = u
	give(t, s, order(membership.Fence, 1, "op", "aa"))
	if err := u.Start(t.Context()); !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "by operation op, term 1") {
		t.Errorf("%v: a fenced unit refuses, also while it runs", err)
	}
	for range 2 {
		if err := u.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.mu.Lock()
	m.broken = errors.New("the bus is gone")
	m.mu.Unlock()
	if _, err := u.State(t.Context()); err == nil || errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "the bus is gone") {
		t.Errorf("%v", err)
	}
	if _, err := u.ask(t.Context(), "rm -rf"); err == nil || !strings.Contains(err.Error(), "it can start, stop") {
		t.Errorf("%v", err)
	}
}

func TestSocketWithNobodyBehind(t *testing.T) {
	if _, err := Socket(filepath.Join(t.TempDir(), "u")).State(t.Context()); err == nil || !strings.Contains(err.Error(), "agent.unit") {
		t.Errorf("%v", err)
	}
	path := filepath.Join(t.TempDir(), "u")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Socket(path).Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: one that is frozen does not hold the agent", err)
	}
}
