package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// far is a deadline beyond what anything here takes, near one for what is to
// fail: what comes later than that is no mistake of the network, and is not
// counted as one.
const (
	far  = time.Minute
	near = 500 * time.Millisecond
)

func network(t *testing.T, hosts int) *Network {
	t.Helper()
	Need(t)
	n, err := NewNetwork(hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// socket opens a UDP socket on a host; whatever comes is answered where echo says so.
func socket(t *testing.T, n *Network, host int, echo bool) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	err := n.In(host, func() (err error) {
		c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(Address(host), 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if echo {
		go func() {
			for b := make([]byte, 100); ; {
				size, from, err := c.ReadFromUDPAddrPort(b)
				if err != nil {
					return
				}
				_, _ = c.WriteToUDPAddrPort(b[:size], from)
			}
		}()
	}
	return c
}

// ping sends one datagram and waits for it to come back.
func ping(c *net.UDPConn, to net.Addr, wait time.Duration) (time.Duration, error) {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], pings.Add(1))
	began := time.Now()
	if err := c.SetReadDeadline(began.Add(wait)); err != nil {
		return 0, err
	}
	if _, err := c.WriteTo(id[:], to); err != nil {
		return 0, err
	}
	for b := make([]byte, 100); ; {
		size, err := c.Read(b)
		if err != nil {
			return 0, err
		}
		if bytes.Equal(b[:size], id[:]) { // another is the answer to an earlier one
			return time.Since(began), nil
		}
	}
}

var pings atomic.Uint64

// fastest of some pings.
func fastest(t *testing.T, c *net.UDPConn, to net.Addr) time.Duration {
	t.Helper()
	best := far
	for range 20 {
		rtt, err := ping(c, to, far)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, rtt)
	}
	return best
}

func set(t *testing.T, n *Network, from, to int, l Link) {
	t.Helper()
	if err := n.Set(from, to, l); err != nil {
		t.Fatal(err)
	}
}

func TestDelay(t *testing.T) {
	n := network(t, 3)
	h1, h2, h3 := socket(t, n, 1, false), socket(t, n, 2, true), socket(t, n, 3, true)
	set(t, n, 1, 2, Link{Delay: 40 * time.Millisecond})
	if rtt := fastest(t, h1, h2.LocalAddr()); rtt < 40*time.Millisecond {
		t.Errorf("40ms one way: %v", rtt)
	}
	// How fast the others can be is the machine's affair; one answer in less than
	// the delay proves that it is not on their way.
	until(t, "h3 is not delayed", func() bool { rtt, err := ping(h1, h3.LocalAddr(), far); return err == nil && rtt < 40*time.Millisecond })
	set(t, n, 2, 1, Link{Delay: 40 * time.Millisecond, Jitter: 40 * time.Millisecond})
	var seen []time.Duration
	for range 30 {
		rtt, err := ping(h1, h2.LocalAddr(), far)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, rtt)
	}
	if least, most := slices.Min(seen), slices.Max(seen); least < 80*time.Millisecond || most-least < 10*time.Millisecond {
		t.Errorf("80ms and up to 40ms more: %v to %v", least, most)
	}
	if err := n.Clear(); err != nil {
		t.Fatal(err)
	}
	until(t, "nothing is delayed", func() bool { rtt, err := ping(h1, h2.LocalAddr(), far); return err == nil && rtt < 40*time.Millisecond })
}

// Jitter does not reorder: TCP would take that for loss, and real paths rarely do.
func TestJitterKeepsTheOrder(t *testing.T) {
	n := network(t, 2)
	h1, h2 := socket(t, n, 1, false), socket(t, n, 2, false)
	set(t, n, 1, 2, Link{Jitter: 20 * time.Millisecond})
	for i := range 50 {
		if _, err := h1.WriteTo([]byte{byte(i)}, h2.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	if err := h2.SetReadDeadline(time.Now().Add(far)); err != nil {
		t.Fatal(err)
	}
	for i, b := 0, make([]byte, 10); i < 50; i++ {
		if _, err := h2.Read(b); err != nil || b[0] != byte(i) {
			t.Fatalf("%d instead of %d: %v", b[0], i, err)
		}
	}
}

func TestLoss(t *testing.T) {
	n := network(t, 2)
	h1, h2 := socket(t, n, 1, false), socket(t, n, 2, false)
	set(t, n, 1, 2, Link{Loss: 0.5})
	last := []byte("last")
	got, sent, read := 0, 0, make(chan error)
	go func() {
		for b := make([]byte, 10); ; got++ {
			if size, err := h2.Read(b); err != nil || bytes.Equal(b[:size], last) {
				read <- err
				return
			}
		}
	}()
	for ; sent < 1000; sent++ {
		if _, err := h1.WriteTo([]byte("one"), h2.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		if sent%20 == 0 { // a device has a queue of a few hundred
			time.Sleep(time.Millisecond)
		}
	}
	set(t, n, 1, 2, Link{})
	if err := h2.SetReadDeadline(time.Now().Add(far)); err != nil {
		t.Fatal(err)
	}
	if _, err := h1.WriteTo(last, h2.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if got < 350 || got > 650 {
		t.Errorf("%d of %d arrived, half is lost", got, sent)
	}
}

func TestRate(t *testing.T) {
	n := network(t, 2)
	set(t, n, 1, 2, Link{Rate: 8_000_000})
	l := listen(t, n, 2, 5000)
	c, err := dial(t, n, 1, l.Addr(), far)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	began := time.Now()
	go func() { _, _ = c.Write(make([]byte, 1_000_000)) }()
	if _, err := io.ReadFull(other, make([]byte, 1_000_000)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("a megabyte at 8 Mbit/s in %v", took)
	}
}

// Each direction and each pair is cut by itself.
func TestCut(t *testing.T) {
	n := network(t, 3)
	h1, h2, h3 := socket(t, n, 1, false), socket(t, n, 2, false), socket(t, n, 3, false)
	set(t, n, 1, 2, Link{Cut: true})
	for _, test := range []struct {
		from, to *net.UDPConn
		arrives  bool
	}{{h1, h2, false}, {h2, h1, true}, {h1, h3, true}, {h3, h1, true}, {h2, h3, true}, {h3, h2, true}} {
		wait := near
		if test.arrives {
			wait = far
		}
		err := send(test.from, test.to, wait)
		if test.arrives != (err == nil) {
			t.Errorf("%s to %s: %v, want it to arrive: %v", test.from.LocalAddr(), test.to.LocalAddr(), err, test.arrives)
		}
	}
	set(t, n, 1, 2, Link{})
	if err := send(h1, h2, far); err != nil {
		t.Error(err)
	}
}

// send gives no error when a datagram arrives.
func send(from, to *net.UDPConn, wait time.Duration) error {
	if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
		return err
	}
	if err := to.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	_, err := to.Read(make([]byte, 10))
	return err
}

func TestPort(t *testing.T) {
	n := network(t, 2)
	peer, client := listen(t, n, 2, 2380), listen(t, n, 2, 2379)
	set(t, n, 1, 2, Link{Ports: []uint16{2380}})
	if c, err := dial(t, n, 1, client.Addr(), far); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if c, err := dial(t, n, 1, peer.Addr(), near); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("blocked, and %v, %v", c, err)
	}
	set(t, n, 1, 2, Link{})
	if c, err := dial(t, n, 1, peer.Addr(), far); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}

func TestRefusesLinks(t *testing.T) {
	n := network(t, 1)
	for _, test := range []struct {
		from, to int
		link     Link
	}{{1, 2, Link{}}, {0, 1, Link{}}, {1, Observer, Link{Loss: 2}}, {1, Observer, Link{Delay: -1}}, {1, Observer, Link{Rate: -1}}} {
		if err := n.Set(test.from, test.to, test.link); err == nil {
			t.Errorf("accepted: %+v", test)
		}
	}
}

func listen(t *testing.T, n *Network, host int, port uint16) net.Listener {
	t.Helper()
	var l net.Listener
	err := n.In(host, func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(Address(host), port).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func dial(t *testing.T, n *Network, host int, to net.Addr, wait time.Duration) (c net.Conn, err error) {
	t.Helper()
	d := net.Dialer{Timeout: wait}
	if e := n.In(host, func() error { c, err = d.Dial("tcp4", to.String()); return nil }); e != nil {
		t.Fatal(e)
	}
	return c, err
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(far); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
