package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"suffrage/membership"
	"suffrage/membership/host"
)

// TestUnitRestartsUntilTheFence: what systemd does with Restart=always, and what
// it must not do (S023, S116).
func TestUnitRestartsUntilTheFence(t *testing.T) {
	defer goleak.VerifyNone(t)
	args := as(t, "sleep")
	dir := t.TempDir()
	h := Host{Name: "h1", Dir: dir}
	if err := os.Mkdir(h.Path(DataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := h.listenUnit()
	if err != nil {
		t.Fatal(err)
	}
	s := NewSupervisor()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	var mu sync.Mutex
	var newest *Child
	u := NewUnit(s, h.Path(DataDir), func(ctx context.Context) (*Child, error) {
		c, err := s.Start(ctx, Process{Name: "h1 member", Args: args, Log: filepath.Join(dir, "log")})
		mu.Lock()
		newest = c
		mu.Unlock()
		return c, err
	})
	kill := func() {
		mu.Lock()
		defer mu.Unlock()
		syscall.Kill(newest.PID, syscall.SIGKILL)
		<-newest.Ended()
	}
	u.Restart = 10 * time.Millisecond
	running.Go(func() { u.Run(ctx, l) })
	client := host.Socket(h.Path(UnitSocket))
	starts := func() int { s, _ := client.State(ctx); return s.Starts }
	eventually(t, "the unit answers", func() bool { _, err := client.State(ctx); return err == nil })

	for range 2 {
		if err := client.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	eventually(t, "a killed one is started again", func() bool { return starts() == 2 })
	if err := client.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * u.Restart)
	if s, err := client.State(ctx); s.Running || s.Starts != 2 || err != nil {
		t.Errorf("%+v, %v: one that was told to end stays so", s, err)
	}
	if err := client.Start(ctx); err != nil {
		t.Fatal(err)
	}

	server, err := host.New(host.Options{Host: "h1", Data: h.Path(DataDir), Datastore: h.Path("data/etcd"), Unit: client})
	if err != nil {
		t.Fatal(err)
	}
	order := func(v membership.Verb) {
		t.Helper()
		o := host.Order{Verb: v, Term: 1, Operation: "op", Member: "aa"}
		if err := server.Order(ctx, o).Err("h1", o); err != nil {
			t.Fatal(err)
		}
	}
	order(membership.Fence)
	if s, _ := client.State(ctx); !s.Running || s.Starts != 3 {
		t.Errorf("%+v: what runs goes on behind the fence", s)
	}
	kill()
	time.Sleep(10 * u.Restart)
	if s, _ := client.State(ctx); s.Running || s.Starts != 3 || !errors.Is(client.Start(ctx), host.ErrFenced) {
		t.Errorf("%+v: it came back behind the fence", s)
	}
	order(membership.Unfence)
	if err := client.Start(ctx); err != nil || starts() != 4 {
		t.Errorf("%v, %d starts: a fence that is lifted is gone", err, starts())
	}
	cancel()
	running.Wait()
}

func TestUnitSocketPathsAreShort(t *testing.T) {
	_, err := Host{Name: "h1", Dir: "/tmp/" + strings.Repeat("x", 100)}.listenUnit()
	if err == nil || !strings.Contains(err.Error(), "shorter directory") {
		t.Errorf("%v", err)
	}
}
