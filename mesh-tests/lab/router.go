package lab

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The router is a process of its own, so that nothing that the tests do holds
// it up. Its files from 3 on are the hosts' devices, routerHosts has their
// numbers in that order; links come on standard input, each is answered with an
// empty line once it is in force. It ends with its input.
const routerHosts = "SUFFRAGE_LAB_HOSTS"

func router() error {
	var numbers []int
	for _, text := range strings.Split(os.Getenv(routerHosts), ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("lab: router: %w", err)
		}
		numbers = append(numbers, n)
	}
	r := &carrier{at: map[byte]int{}, rng: rand.New(rand.NewSource(1))}
	for i, n := range numbers {
		fd := 3 + i
		if err := unix.SetNonblock(fd, true); err != nil {
			return fmt.Errorf("lab: router: device of %s: %w", Address(n), err)
		}
		r.fds = append(r.fds, fd)
		r.at[byte(n)] = i
	}
	r.lanes = make([]lane, len(numbers)*len(numbers))
	for i := range r.lanes {
		r.lanes[i].link.Store(&Link{})
	}
	carried := make(chan error, 1)
	go func() { carried <- r.carry() }()
	told := make(chan error, 1)
	go func() { told <- r.listen(os.Stdin, os.Stdout, numbers) }()
	select {
	case err := <-carried:
		return err
	case err := <-told:
		return err
	}
}

// listen takes links until the input ends.
func (r *carrier) listen(in io.Reader, out io.Writer, numbers []int) error {
	for lines := bufio.NewScanner(in); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		var s setLink
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("lab: router: %w", err)
		}
		from, to := slices.Index(numbers, s.From), slices.Index(numbers, s.To)
		if from < 0 || to < 0 {
			return fmt.Errorf("lab: router: no link from %d to %d", s.From, s.To)
		}
		r.lane(from, to).link.Store(&s.Link)
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
	}
}

// carrier moves packets. Only its thread touches it, but for the links.
type carrier struct {
	fds   []int
	at    map[byte]int // last byte of an address → index
	lanes []lane       // from × to
	rng   *rand.Rand
	held  held
	seq   uint64
	free  [][]byte
}

// lane is one direction between two hosts.
type lane struct {
	link atomic.Pointer[Link]
	busy time.Duration // until when the rate has it send what was taken before
	last time.Duration // when the newest packet arrives: jitter reorders nothing
	wait int           // packets held
}

func (r *carrier) lane(from, to int) *lane { return &r.lanes[from*len(r.fds)+to] }

// packet is one that is held back.
type packet struct {
	due  time.Duration
	seq  uint64
	lane *lane
	to   int
	data []byte
}

type held []packet

func (h held) Len() int      { return len(h) }
func (h held) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *held) Push(x any)   { *h = append(*h, x.(packet)) }
func (h *held) Pop() any     { o := *h; p := o[len(o)-1]; *h = o[:len(o)-1]; return p }
func (h held) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].seq < h[j].seq
}

// maxHeld bounds the router's memory, in packets.
const maxHeld = 200_000

// carry is the router's thread. Go's own timers are a millisecond coarse, and a
// thread without a real-time priority lets packets wait while something compiles
// (5 ms one way became 20), so it polls by itself and asks for both.
func (r *carrier) carry() error {
	runtime.LockOSThread()
	debug.SetGCPercent(400)
	if err := realTime(); err != nil { // what is said of links is less exact then, and no less true
		fmt.Fprintf(os.Stderr, "NOTE: lab: router: %v: while the machine is busy, links are slower than told. What helps: CAP_SYS_NICE, or nothing else on it\n", err)
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("lab: router: %w", err)
	}
	for i, fd := range r.fds {
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return fmt.Errorf("lab: router: %w", err)
		}
	}
	began := time.Now()
	events := make([]unix.EpollEvent, len(r.fds))
	buffer := make([]byte, mtu+100)
	for {
		now := time.Since(began)
		for len(r.held) > 0 && r.held[0].due <= now {
			p := heap.Pop(&r.held).(packet)
			p.lane.wait--
			r.send(p.to, p.data)
			r.free = append(r.free, p.data)
		}
		timeout := unix.NsecToTimespec(int64(time.Hour))
		if len(r.held) > 0 {
			timeout = unix.NsecToTimespec(int64(r.held[0].due - now))
		}
		n, err := pollFor(poll, events, &timeout)
		if err != nil {
			return err
		}
		now = time.Since(began)
		for _, e := range events[:n] {
			// At most so many at once, or one busy host holds up what is due for others.
			for range 64 {
				size, err := unix.Read(r.fds[e.Fd], buffer)
				if err != nil {
					if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
						break
					}
					return fmt.Errorf("lab: router: read: %w", err)
				}
				r.take(int(e.Fd), buffer[:size], now)
			}
		}
	}
}

// realTime puts the calling thread before all that have an ordinary priority.
func realTime() error {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // a twentieth of a millisecond otherwise
	err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 50}, 0)
	if err != nil {
		return fmt.Errorf("no real-time priority: %w", err)
	}
	return nil
}

func pollFor(poll int, events []unix.EpollEvent, timeout *unix.Timespec) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(poll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("lab: router: epoll: %w", errno)
}

// take decides what becomes of one packet.
func (r *carrier) take(from int, data []byte, now time.Duration) {
	if len(data) < 20 || data[0]>>4 != 4 || data[16] != 10 || data[17] != 77 || data[18] != 0 {
		return // IPv6, or to nowhere
	}
	to, known := r.at[data[19]]
	if !known {
		return
	}
	l := r.lane(from, to)
	link := l.link.Load()
	if link.Cut || link.MaxSize > 0 && len(data) > link.MaxSize || link.Loss > 0 && r.rng.Float64() < link.Loss || blocked(link.Ports, data) {
		return
	}
	due := now
	if link.Rate > 0 {
		due = max(now, l.busy)
		if due-now > queueTime {
			return
		}
		due += time.Duration(int64(len(data)) * 8 * int64(time.Second) / link.Rate)
		l.busy = due
	}
	due += link.Delay
	if link.Jitter > 0 {
		due += time.Duration(r.rng.Int63n(int64(link.Jitter)))
	}
	if due <= now && l.wait == 0 {
		r.send(to, data)
		return
	}
	if len(r.held) >= maxHeld {
		return
	}
	due = max(due, l.last)
	l.last = due
	l.wait++
	r.seq++
	heap.Push(&r.held, packet{due: due, seq: r.seq, lane: l, to: to, data: r.keep(data)})
}

func (r *carrier) keep(data []byte) []byte {
	var b []byte
	if n := len(r.free); n > 0 {
		b, r.free = r.free[n-1], r.free[:n-1]
	}
	return append(b[:0], data...)
}

// send loses what a host does not take: its queue is full, or it is down.
func (r *carrier) send(to int, data []byte) { _, _ = unix.Write(r.fds[to], data) }

// blocked reports whether a packet is of a TCP connection with one of the ports.
func blocked(ports []uint16, data []byte) bool {
	if len(ports) == 0 || data[9] != unix.IPPROTO_TCP {
		return false
	}
	head := int(data[0]&15) * 4
	if len(data) < head+4 {
		return false
	}
	return slices.Contains(ports, binary.BigEndian.Uint16(data[head:])) || slices.Contains(ports, binary.BigEndian.Uint16(data[head+2:]))
}
