package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func loopback(s string) netip.Addr { return netip.MustParseAddr(s) }

// relayed starts a relay on 127.98.0.1 before a listener on 127.98.0.101 and
// gives the relay's address and the listener.
func relayed(t *testing.T, delays *Delays) (netip.AddrPort, net.Listener) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	behind, err := net.Listen("tcp", "127.98.0.101:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { behind.Close() })
	r, err := ListenRelay(netip.MustParseAddrPort("127.98.0.1:0"), behind.Addr().(*net.TCPAddr).AddrPort(), delays, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r.mesh = r.listener.Addr().(*net.TCPAddr).AddrPort()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r.mesh, behind
}

func dialFrom(t *testing.T, source string, to netip.AddrPort) *net.TCPConn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func TestRelayDelaysTheReplyByBothHosts(t *testing.T) {
	delays := &Delays{}
	delays.Set(loopback("127.98.0.1"), 60*time.Millisecond)
	delays.Set(loopback("127.98.0.2"), 40*time.Millisecond)
	mesh, behind := relayed(t, delays)
	var sources sync.Map
	go func() {
		for {
			c, err := behind.Accept()
			if err != nil {
				return
			}
			sources.Store(c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), true)
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	for _, tc := range []struct {
		source string
		atMost time.Duration
		least  time.Duration
		why    string
	}{
		{"127.98.0.2", 5 * time.Second, 100 * time.Millisecond, "an agent binds its mesh address: both hosts' delays, once"},
		{"127.0.0.1", 5 * time.Second, 60 * time.Millisecond, "an etcd peer does not: the delay of the host it dialled"},
	} {
		c := dialFrom(t, tc.source, mesh)
		start := time.Now()
		if _, err := c.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		// Only the lower bound is a promise; the upper one is the machine's.
		if took := time.Since(start); took < tc.least || took > tc.atMost {
			t.Errorf("from %s: a round trip took %v, want at least %v: %s", tc.source, took, tc.least, tc.why)
		}
	}
	if _, ok := sources.Load(loopback("127.98.0.2")); !ok {
		t.Error("the process behind did not see the dialling host's mesh address")
	}

	delays.Set(loopback("127.98.0.1"), 0)
	delays.Set(loopback("127.98.0.2"), 0)
	c := dialFrom(t, "127.98.0.2", mesh)
	c.Write([]byte("pong"))
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		t.Errorf("after the delays are taken away: %v", err)
	}
}

func TestRelayPassesTheEndOn(t *testing.T) {
	mesh, behind := relayed(t, &Delays{})
	c := dialFrom(t, "127.0.0.1", mesh)
	far, err := behind.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()

	c.Write([]byte("last words"))
	c.CloseWrite()
	got, err := io.ReadAll(far)
	if err != nil || string(got) != "last words" {
		t.Errorf("the host read %q, %v; want the words and the end", got, err)
	}
	far.Write([]byte("heard"))
	far.Close()
	got, err = io.ReadAll(c)
	if err != nil || string(got) != "heard" {
		t.Errorf("the dialler read %q, %v; a half-closed connection still carries the reply", got, err)
	}
}

func TestRelayResetsWhenNothingListens(t *testing.T) {
	mesh, behind := relayed(t, &Delays{})
	behind.Close()
	// The reset may come before the dial has returned.
	c, err := net.Dial("tcp", mesh.String())
	if err == nil {
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v; a dead process must not look like one that closed in peace", err)
	}
}

func TestRelayPushesBack(t *testing.T) {
	delays := &Delays{}
	mesh, behind := relayed(t, delays)
	delays.Set(mesh.Addr(), time.Hour)
	c := dialFrom(t, "127.0.0.1", mesh)
	far, err := behind.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	far.(*net.TCPConn).SetWriteBuffer(64 << 10)
	// 64 MiB cannot all be taken in by a line of 1 MiB and the sockets' buffers.
	far.SetWriteDeadline(time.Now().Add(2 * time.Second))
	n, err := far.Write(make([]byte, 64<<20))
	if err == nil || n == 64<<20 {
		t.Errorf("wrote %d bytes, %v; a full line must stop its sender", n, err)
	}
	_ = c
}

func TestDelayLineKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		var got bytes.Buffer
		delays := []time.Duration{300 * time.Millisecond, 0, 100 * time.Millisecond}
		turn := 0
		next := func() time.Duration { turn++; return delays[turn-1] }
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- delayLine(t.Context(), &got, far, next, func() {}) }()
		for _, s := range []string{"one ", "two ", "three"} {
			near.Write([]byte(s))
		}
		near.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got.String() != "one two three" {
			t.Errorf("came out as %q", got.String())
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("took %v, want 300ms: no chunk overtakes the slowest before it, and none waits longer", took)
		}
	})
}

func TestDelayLineStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- delayLine(ctx, io.Discard, far, func() time.Duration { return time.Hour }, func() { far.Close() })
		}()
		near.Write([]byte("late"))
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		near.Close()
	})
}
