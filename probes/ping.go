package probes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// MaxOutstanding is how many pings may wait for their outcome at once. A ping
// beyond it is lost at once.
const MaxOutstanding = 64

// largeEvery is a window's worth: a path is known to carry large packets for as
// long as any other figure of it is known.
const largeEvery = 100

// Outcome is what became of one ping.
type Outcome struct {
	// At is when it was known.
	At time.Time
	// RTT is the time from the ping's tick to its answer, which is what a
	// message of etcd's on the same path would have met: where the connection
	// had to be made first, that time is part of it. Of a lost ping it is how
	// long it was waited for.
	RTT time.Duration
	// Offset is how far the peer's clock is ahead of this one, in NTP's way:
	// half of what the way there seems longer than the way back.
	Offset time.Duration
	// Late is what Send was given.
	Late time.Duration
	// Err is why the ping is lost; nil when it was answered.
	Err error
}

// Lost reports that no answer came.
func (o Outcome) Lost() bool { return o.Err != nil }

// Pinger keeps one connection to a peer and sends pings over it, without
// waiting for the answer to the one before: a period may be far shorter than
// the round trip.
//
// Every ping gives one outcome. It is lost when no answer came within the
// timeout, and at once when the connection cannot be made or breaks; then the
// next ping makes a new one. A connection on which nothing was heard for two
// timeouts is given up as well, as etcd's own streams are (rafthttp reads with a
// timeout of 5 s): TCP's growing pauses between retransmissions would otherwise
// keep a path "lost" long after it works again.
//
// The first ping on a connection and one in largeEvery are padded to more than a
// packet. On a path that drops what is larger than its MTU, small messages pass and
// etcd's snapshots never arrive (cilium#37919, tailscale#297); there such a ping has
// no answer, and with it no other until there is a new connection, which begins
// with one again: the path is lost, as it is to etcd.
type Pinger struct {
	dial    func(context.Context) (net.Conn, error)
	timeout time.Duration
	done    func(Outcome)

	asked   chan time.Duration
	dialled chan link
	heard   chan answer

	// What follows belongs to the goroutine of Run.
	conn    net.Conn
	dialing bool
	lastErr error              // of the last connection; why pings time out while one is being made
	asking  time.Time          // of the first ping since the peer was heard; zero when none
	written int                // pings on conn
	silent  bool               // nothing was heard on conn
	stop    context.CancelFunc // ends the reader of conn
	readers sync.WaitGroup
	seq     uint64
	waiting [MaxOutstanding]ping // a ring in the order of sending
	first   int
	count   int
	out     [FrameSize + MaxPadding]byte
}

type ping struct {
	seq  uint64
	at   time.Time
	late time.Duration
	sent bool
}

type link struct {
	conn net.Conn
	err  error
}

// answer is a frame that the reader of conn has read, or its end.
type answer struct {
	conn  net.Conn
	frame Frame
	at    time.Time
	err   error
}

// NewPinger makes a Pinger. dial makes one connection and must end with its
// context; done takes each outcome and must not block; it is called from Run's
// goroutine, and from Send's when pings pile up.
func NewPinger(dial func(context.Context) (net.Conn, error), timeout time.Duration, done func(Outcome)) *Pinger {
	return &Pinger{
		dial: dial, timeout: timeout, done: done,
		asked:   make(chan time.Duration, MaxOutstanding),
		dialled: make(chan link),
		heard:   make(chan answer, 1),
	}
}

var errPileUp = fmt.Errorf("probes: ping: %d pings wait already", MaxOutstanding)

// Send asks for one ping and returns at once. late is how late the tick was
// that asks, and comes back with the outcome.
func (p *Pinger) Send(late time.Duration) {
	select {
	case p.asked <- late:
	default:
		p.done(Outcome{At: time.Now(), Late: late, Err: errPileUp})
	}
}

// Run sends the pings that Send asks for, until the context ends. Pings that
// wait then have no outcome.
func (p *Pinger) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer func() {
		cancel()
		p.hangUp()
		if p.dialing {
			if l := <-p.dialled; l.conn != nil {
				l.conn.Close()
			}
		}
		p.readers.Wait()
	}()
	for {
		p.setTimer(timer)
		select {
		case <-ctx.Done():
			return nil
		case late := <-p.asked:
			p.send(ctx, late)
		case l := <-p.dialled:
			p.dialing = false
			p.connected(ctx, l)
		case a := <-p.heard:
			p.take(a)
		case <-timer.C:
			p.expire(time.Now())
		}
	}
}

// setTimer wakes Run when the oldest ping times out.
func (p *Pinger) setTimer(t *time.Timer) {
	if p.count == 0 {
		t.Stop()
		return
	}
	t.Reset(time.Until(p.waiting[p.first].at.Add(p.timeout)))
}

func (p *Pinger) send(ctx context.Context, late time.Duration) {
	if p.count == MaxOutstanding {
		p.done(Outcome{At: time.Now(), Late: late, Err: errPileUp})
		return
	}
	p.seq++
	w := &p.waiting[(p.first+p.count)%MaxOutstanding]
	*w = ping{seq: p.seq, at: time.Now(), late: late}
	p.count++
	switch {
	case p.conn != nil:
		p.write(w)
	case !p.dialing:
		p.dialing = true
		go p.connect(ctx)
	}
}

// connect makes one connection. Its own timeout is that of a ping: the ping
// that asked for it is lost by then.
func (p *Pinger) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	conn, err := p.dial(ctx)
	p.dialled <- link{conn, err}
}

func (p *Pinger) connected(ctx context.Context, l link) {
	if l.err != nil {
		p.lastErr = l.err
		p.loseAll(l.err)
		return
	}
	ctx, p.stop = context.WithCancel(ctx)
	p.conn, p.asking, p.lastErr = l.conn, time.Time{}, nil
	p.written, p.silent = 0, true
	p.readers.Go(func() { p.listen(ctx, l.conn) })
	for i := range p.count {
		if w := &p.waiting[(p.first+i)%MaxOutstanding]; p.conn != nil && !w.sent {
			p.write(w)
		}
	}
}

// write puts a ping on the connection. Frames are far smaller than the send
// buffer, so the deadline is met only when the peer has been silent for long.
func (p *Pinger) write(w *ping) {
	f := Frame{Seq: w.seq, T1: w.at.UnixNano()}
	if p.written%largeEvery == 0 {
		f.Padding = MaxPadding
	}
	p.written++
	err := p.conn.SetWriteDeadline(time.Now().Add(p.timeout))
	if err == nil {
		_, err = p.conn.Write(f.Append(p.out[:0]))
	}
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		// The reader says why: a peer that refuses this host's key says so before
		// it closes the connection.
	case err != nil:
		p.broken(err)
		return
	}
	w.sent = true
	if p.asking.IsZero() {
		p.asking = time.Now()
	}
}

// listen reads answers until the connection ends.
func (p *Pinger) listen(ctx context.Context, conn net.Conn) {
	buf := make([]byte, FrameSize)
	for {
		f, err := ReadFrame(conn, buf)
		a := answer{conn: conn, frame: f, at: time.Now(), err: err}
		select {
		case p.heard <- a:
		case <-ctx.Done():
			return
		}
		if a.err != nil {
			return
		}
	}
}

var errOutOfTurn = errors.New("probes: ping: the peer answered out of turn: is it suffrage of the same version?")

// take gives the oldest ping its answer. Answers come in the order of the
// pings, since one connection carries both.
func (p *Pinger) take(a answer) {
	if a.conn != p.conn {
		return // of a connection that was given up
	}
	if a.err != nil {
		if errors.Is(a.err, io.EOF) {
			a.err = errors.New("the peer closed the connection")
		}
		p.broken(a.err)
		return
	}
	p.asking, p.silent = time.Time{}, false
	if p.count > 1 {
		p.asking = a.at
	}
	switch w := &p.waiting[p.first]; {
	case !a.frame.Answer, a.frame.Seq > p.seq, p.count > 0 && a.frame.Seq > w.seq:
		p.broken(errOutOfTurn)
	case p.count == 0 || a.frame.Seq < w.seq:
		// Its ping was lost by the timeout already.
	case a.at.Sub(w.at) >= p.timeout:
		// The timer is about to say so.
	default:
		p.drop(outcome(*w, a))
	}
}

// outcome works out the offset from the wall clocks of both sides, with the
// time of the answer taken as T1 plus the round trip by the monotonic clock: a
// step of the wall clock in between must not count half.
func outcome(w ping, a answer) Outcome {
	rtt := a.at.Sub(w.at)
	t1 := w.at.UnixNano()
	t4 := t1 + int64(rtt)
	// Each difference is small where clocks are sane; where they are not, the
	// sum may wrap, and the offset is nonsense either way. It never gates.
	offset := (a.frame.T2-t1)/2 + (a.frame.T3-t4)/2
	return Outcome{At: a.at, RTT: rtt, Offset: time.Duration(offset), Late: w.late}
}

// drop takes the oldest ping out and reports it.
func (p *Pinger) drop(o Outcome) {
	p.first = (p.first + 1) % MaxOutstanding
	p.count--
	p.done(o)
}

// expire loses the pings whose time is over.
func (p *Pinger) expire(now time.Time) {
	for p.count > 0 {
		w := p.waiting[p.first]
		if now.Sub(w.at) < p.timeout {
			break
		}
		err := p.lastErr
		if err == nil {
			err = fmt.Errorf("probes: ping: no answer within %v%s", p.timeout, p.large())
		}
		p.drop(Outcome{At: now, RTT: now.Sub(w.at), Late: w.late, Err: err})
	}
	if p.conn != nil && !p.asking.IsZero() && now.Sub(p.asking) >= 2*p.timeout {
		p.broken(fmt.Errorf("nothing heard for %v%s", 2*p.timeout, p.large()))
	}
}

// AskMTU is to be asked where a connection is made and nothing larger is heard.
const AskMTU = "does the path drop packets larger than its MTU? Compare the MTUs of the mesh's interfaces, and try: ping -M do -s 1252"

// large says what else may be wrong where a connection was made, and its first
// ping has no answer.
func (p *Pinger) large() string {
	if p.conn == nil || !p.silent {
		return ""
	}
	return fmt.Sprintf(" to a first message of %d bytes, on a connection that was made: %s", FrameSize+MaxPadding, AskMTU)
}

// broken gives the connection up, and with it every ping that waits.
func (p *Pinger) broken(err error) {
	err = fmt.Errorf("probes: ping: connection lost: %w", err)
	p.hangUp()
	p.lastErr = err
	p.loseAll(err)
}

func (p *Pinger) loseAll(err error) {
	now := time.Now()
	for p.count > 0 {
		w := p.waiting[p.first]
		p.drop(Outcome{At: now, RTT: now.Sub(w.at), Late: w.late, Err: err})
	}
}

func (p *Pinger) hangUp() {
	if p.conn == nil {
		return
	}
	p.stop()
	p.conn.Close()
	p.conn = nil
}
