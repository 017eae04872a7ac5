package probes_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/probes"
)

// peer answers pings over an in-memory connection, after a delay, as long as up
// says so.
type peer struct {
	mu    sync.Mutex
	delay time.Duration
	down  error
	mute  bool
	conns []net.Conn
	// narrow: padded pings are dropped. padded has of each ping whether it was.
	narrow bool
	padded []bool
	dials  int
}

func (p *peer) dial(ctx context.Context) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials++
	if p.down != nil {
		return nil, p.down
	}
	near, far := net.Pipe()
	p.conns = append(p.conns, far)
	go p.serve(far)
	return near, nil
}

// serve answers each ping after the delay, in order, without letting one wait
// for the other.
func (p *peer) serve(conn net.Conn) {
	defer conn.Close()
	type due struct {
		at time.Time
		f  probes.Frame
	}
	queue := make(chan due, 1000)
	defer close(queue)
	go func() {
		for d := range queue {
			time.Sleep(time.Until(d.at))
			d.f.Answer, d.f.T2, d.f.T3 = true, time.Now().UnixNano(), time.Now().UnixNano()
			conn.Write(d.f.Append(nil))
		}
	}()
	buf := make([]byte, probes.FrameSize)
	for narrow := false; ; {
		f, err := probes.ReadFrame(conn, buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.padded = append(p.padded, f.Padding > 0)
		narrow = narrow || p.narrow && f.Padding > 0 // nothing gets past what is sent again and again
		if !p.mute && !narrow {
			queue <- due{time.Now().Add(p.delay), f}
		}
		p.mu.Unlock()
	}
}

func (p *peer) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *peer) hangUp() {
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// outcomes collects what a Pinger reports.
type outcomes struct {
	mu  sync.Mutex
	all []probes.Outcome
}

func (o *outcomes) add(x probes.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, x)
}

func (o *outcomes) take() []probes.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all
	o.all = nil
	return all
}

// pinging runs a test with a Pinger in a bubble of its own time.
func pinging(t *testing.T, p *peer, timeout time.Duration, test func(*probes.Pinger, *outcomes)) {
	synctest.Test(t, func(t *testing.T) {
		var got outcomes
		ctx, cancel := context.WithCancel(t.Context())
		pinger := probes.NewPinger(p.dial, timeout, got.add)
		ended := make(chan error)
		go func() { ended <- pinger.Run(ctx) }()
		test(pinger, &got)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.set(p.hangUp)
	})
}

func TestPingsArePipelined(t *testing.T) {
	p := &peer{delay: 150 * time.Millisecond}
	pinging(t, p, time.Second, func(pinger *probes.Pinger, got *outcomes) {
		for i := range 40 {
			pinger.Send(time.Duration(i))
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		all := got.take()
		if len(all) != 40 {
			t.Fatalf("%d outcomes of 40 pings", len(all))
		}
		for i, o := range all {
			if o.Lost() || o.RTT != 150*time.Millisecond || o.Late != time.Duration(i) {
				t.Errorf("ping %d: %+v, want 150 ms, late %d", i, o, i)
			}
			if o.Offset != 75*time.Millisecond {
				// The peer stamps after its delay, so the whole delay lies on the way there.
				t.Errorf("ping %d: offset %v, want 75ms", i, o.Offset)
			}
		}
		if p.dials != 1 {
			t.Errorf("%d connections, want one that is kept open", p.dials)
		}
	})
}

func TestLateAnswersAreLost(t *testing.T) {
	p := &peer{delay: 300 * time.Millisecond}
	pinging(t, p, 250*time.Millisecond, func(pinger *probes.Pinger, got *outcomes) {
		for range 10 {
			pinger.Send(0)
			time.Sleep(50 * time.Millisecond)
		}
		p.set(func() { p.delay = 0 })
		for range 10 {
			pinger.Send(0)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		all := got.take()
		if len(all) != 20 {
			t.Fatalf("%d outcomes of 20 pings", len(all))
		}
		for i, o := range all {
			// In-order answers: those behind slow ones are slow as well, the last are not.
			if want := i < 10; i < 10 || i > 15 {
				if o.Lost() != want {
					t.Errorf("ping %d: lost %v, want %v (%v)", i, o.Lost(), want, o.Err)
				}
			}
		}
	})
}

func TestLostWhileThereIsNoConnection(t *testing.T) {
	refused := errors.New("h2 at 127.0.0.2:7400: connection refused")
	p := &peer{down: refused}
	pinging(t, p, time.Second, func(pinger *probes.Pinger, got *outcomes) {
		for i := range 5 {
			pinger.Send(0)
			synctest.Wait() // no time passes: the loss is known at once
			all := got.take()
			if len(all) != 1 || !errors.Is(all[0].Err, refused) {
				t.Fatalf("ping %d: outcomes %+v, want one, lost because refused", i, all)
			}
			time.Sleep(50 * time.Millisecond)
		}
		p.set(func() { p.down = nil })
		pinger.Send(0)
		time.Sleep(50 * time.Millisecond)
		if all := got.take(); len(all) != 1 || all[0].Lost() {
			t.Errorf("after the peer came up: %+v, want one answer", all)
		}
		if p.dials != 6 {
			t.Errorf("%d dials, want one per tick", p.dials)
		}
	})
}

func TestBrokenConnectionLosesWhatWaits(t *testing.T) {
	p := &peer{delay: 200 * time.Millisecond}
	pinging(t, p, time.Second, func(pinger *probes.Pinger, got *outcomes) {
		for range 3 {
			pinger.Send(0)
		}
		time.Sleep(50 * time.Millisecond)
		p.set(p.hangUp)
		synctest.Wait()
		all := got.take()
		if len(all) != 3 {
			t.Fatalf("%d outcomes, want three at once", len(all))
		}
		for _, o := range all {
			if !o.Lost() || !strings.Contains(o.Err.Error(), "connection lost") {
				t.Errorf("%+v, want lost with the connection", o)
			}
		}
		pinger.Send(0)
		time.Sleep(300 * time.Millisecond)
		if all := got.take(); len(all) != 1 || all[0].RTT != 200*time.Millisecond {
			t.Errorf("after reconnecting: %+v, want 200 ms", all)
		}
	})
}

// refusing is a connection on whose other end a peer said why it closes it, and
// closed it: what is written finds it reset, what is read is the reason.
type refusing struct{ net.Conn }

func (refusing) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
}

func (refusing) Read([]byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	return 0, errors.New("key is not known")
}

func TestResetLosesForThePeersReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got outcomes
		ctx, cancel := context.WithCancel(t.Context())
		near, _ := net.Pipe()
		pinger := probes.NewPinger(func(context.Context) (net.Conn, error) { return refusing{near}, nil }, time.Second, got.add)
		ended := make(chan error)
		go func() { ended <- pinger.Run(ctx) }()
		for range 2 {
			pinger.Send(0)
		}
		time.Sleep(100 * time.Millisecond)
		all := got.take()
		if len(all) != 2 {
			t.Errorf("%d outcomes, want both at once", len(all))
		}
		for _, o := range all {
			if !o.Lost() || !strings.Contains(o.Err.Error(), "key is not known") {
				t.Errorf("%+v, want lost for the peer's reason", o)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestSilentConnectionIsMadeAnew(t *testing.T) {
	p := &peer{mute: true}
	pinging(t, p, time.Second, func(pinger *probes.Pinger, got *outcomes) {
		for range 4 {
			pinger.Send(0)
			time.Sleep(3 * time.Second)
		}
		if all := got.take(); len(all) != 4 || !all[3].Lost() {
			t.Errorf("%+v, want four lost pings", all)
		}
		if p.dials < 2 {
			t.Error("still on the silent connection, whose TCP may sleep for minutes")
		}
	})
}

func TestPingsNeverPileUp(t *testing.T) {
	p := &peer{mute: true}
	pinging(t, p, time.Hour, func(pinger *probes.Pinger, got *outcomes) {
		for range 3 * probes.MaxOutstanding {
			pinger.Send(0)
		}
		synctest.Wait()
		all := got.take()
		if n := len(all); n < probes.MaxOutstanding || n > 2*probes.MaxOutstanding {
			t.Errorf("%d pings lost at once, want those beyond %d", n, probes.MaxOutstanding)
		}
	})
}

func TestLargePings(t *testing.T) {
	p := &peer{}
	pinging(t, p, time.Second, func(pinger *probes.Pinger, got *outcomes) {
		for range 250 {
			pinger.Send(0)
			synctest.Wait()
		}
		for i, padded := range p.padded {
			if padded != (i%100 == 0) {
				t.Errorf("ping %d is padded: %v", i, padded)
			}
		}
		if n := len(got.take()); n != 250 || len(p.padded) != 250 {
			t.Errorf("%d pings answered of %d", n, len(p.padded))
		}
	})
}

// A path that drops large packets is lost, from the first ping on or within a
// hundred, says what may be wrong, and is as before once it carries them again.
func TestPathThatDropsLargePackets(t *testing.T) {
	p := &peer{}
	pinging(t, p, time.Second, func(pinger *probes.Pinger, got *outcomes) {
		ping := func(n int) (answered, lost int, err error) {
			for range n {
				pinger.Send(0)
				time.Sleep(100 * time.Millisecond)
			}
			for _, o := range got.take() {
				if o.Lost() {
					lost, err = lost+1, o.Err
				} else {
					answered++
				}
			}
			return answered, lost, err
		}
		p.set(func() { p.narrow = true })
		if answered, lost, err := ping(30); answered > 0 || lost < 20 || !strings.Contains(err.Error(), "larger than its MTU") {
			t.Errorf("such a path at first: %d answered, %d lost: %v", answered, lost, err)
		}
		p.set(func() { p.narrow = false })
		ping(30) // the connection that is given up
		if _, lost, err := ping(50); lost > 0 {
			t.Errorf("mended: %d lost: %v", lost, err)
		}
		p.set(func() { p.narrow = true })
		if _, lost, _ := ping(10); lost > 0 {
			t.Errorf("%d small pings are lost", lost)
		}
		ping(100)
		if answered, lost, err := ping(50); answered > 0 || lost < 30 || !strings.Contains(err.Error(), "larger than its MTU") {
			t.Errorf("such a path later: %d answered, %d lost: %v", answered, lost, err)
		}
		p.set(func() { p.narrow = false })
		ping(30)
		if _, lost, err := ping(50); lost > 0 {
			t.Errorf("mended again: %d lost: %v", lost, err)
		}
	})
}

func TestPeerThatTalksNonsense(t *testing.T) {
	for _, tt := range []struct {
		why   string
		reply []byte
		want  string
	}{
		{"answers from the future", probes.Frame{Answer: true, Seq: 99}.Append(nil), "out of turn"},
		{"a ping instead of an answer", probes.Frame{Seq: 1}.Append(nil), "out of turn"},
		{"not a frame", make([]byte, probes.FrameSize), "begins with"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got outcomes
			dial := func(context.Context) (net.Conn, error) {
				near, far := net.Pipe()
				go func() {
					probes.ReadFrame(far, make([]byte, probes.FrameSize))
					far.Write(tt.reply)
					io.Copy(io.Discard, far)
				}()
				return near, nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			pinger := probes.NewPinger(dial, time.Second, got.add)
			go pinger.Run(ctx)
			pinger.Send(0)
			synctest.Wait()
			if all := got.take(); len(all) != 1 || !all[0].Lost() || !strings.Contains(all[0].Err.Error(), tt.want) {
				t.Errorf("%s: %+v, want lost with %q", tt.why, all, tt.want)
			}
			cancel()
			synctest.Wait()
		})
	}
}

func TestServePingsOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		served <- probes.ServePings(conn)
	}()
	done := make(chan probes.Outcome, 10)
	ctx, cancel := context.WithCancel(t.Context())
	pinger := probes.NewPinger(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}, 10*time.Second, func(o probes.Outcome) { done <- o })
	ended := make(chan error)
	go func() { ended <- pinger.Run(ctx) }()
	for range 5 {
		pinger.Send(0)
		if o := <-done; o.Lost() || o.RTT <= 0 || o.Offset.Abs() > o.RTT {
			t.Errorf("%+v, want a round trip and an offset within it", o)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("serving ended with %v, want nil after the other side closed", err)
	}
}

func TestServePingsRefusesNonsense(t *testing.T) {
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- probes.ServePings(far) }()
	near.Write(make([]byte, probes.FrameSize))
	if err := <-served; err == nil || !strings.Contains(err.Error(), "begins with") {
		t.Errorf("%v, want the reason", err)
	}
	near.Close()
}
