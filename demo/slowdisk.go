package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// SlowDisk holds the fsyncs and fdatasyncs of one process back. The calls
// themselves are real and reach the real disk, after the delay.
type SlowDisk struct {
	host     string // whose disk it is, for the story
	delay    atomic.Int64
	listener *os.File
}

// AcceptSlowDisk takes the listener that SlowExec sends over its end of the
// socket pair. It waits until the process has got that far or has died.
func AcceptSlowDisk(socket *os.File) (*SlowDisk, error) {
	defer socket.Close()
	fd, err := receiveDescriptor(socket)
	if err != nil {
		return nil, fmt.Errorf("demo: slow disk: the process handed no listener over: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("demo: slow disk: %w", err)
	}
	syncWakeUp(uintptr(fd))
	return &SlowDisk{listener: os.NewFile(uintptr(fd), "seccomp listener")}, nil
}

// Set makes every sync that starts from now on wait for d first; 0 for none.
func (s *SlowDisk) Set(d time.Duration) { s.delay.Store(int64(d)) }

// Close ends Run. A process that still runs gets ENOSYS for every sync.
func (s *SlowDisk) Close() error { return s.listener.Close() }

// Run answers until the process has ended or Close is called.
func (s *SlowDisk) Run() error {
	conn, err := s.listener.SyscallConn()
	if err != nil {
		return fmt.Errorf("demo: slow disk: %w", err)
	}
	for {
		var n notification
		var failure error
		// A receive would block where no poller sees it, so ask first.
		err := conn.Read(func(fd uintptr) bool {
			var ready bool
			ready, failure = readable(fd)
			if ready {
				n, failure = receive(fd)
			}
			return ready || failure != nil
		})
		switch {
		case errors.Is(err, os.ErrClosed), errors.Is(failure, io.EOF):
			return nil
		case errors.Is(failure, unix.ENOENT), errors.Is(failure, unix.EINTR):
			continue // the caller was killed between the two, or a signal came
		case err != nil || failure != nil:
			return fmt.Errorf("demo: slow disk: %w", errors.Join(err, failure))
		}
		s.answer(n.ID)
	}
}

// answer lets the call pass, now or later. Calls of several threads wait side
// by side, as on a disk with a queue.
func (s *SlowDisk) answer(id uint64) {
	pass := func() {
		conn, err := s.listener.SyscallConn()
		if err == nil {
			// An error means that the caller is gone, or that the demo ends.
			_ = conn.Control(func(fd uintptr) { _ = letPass(fd, id) })
		}
	}
	if d := time.Duration(s.delay.Load()); d > 0 {
		time.AfterFunc(d, pass)
		return
	}
	pass()
}

// readable reports whether a notification waits. io.EOF: every process with
// the filter has ended.
func readable(fd uintptr) (bool, error) {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, err := unix.Poll(p, 0)
	switch {
	case err != nil:
		return false, err
	case p[0].Revents&unix.POLLIN != 0:
		return true, nil
	case p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0:
		return false, io.EOF
	}
	return false, nil
}

func receiveDescriptor(socket *os.File) (int, error) {
	conn, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	control := make([]byte, unix.CmsgSpace(4))
	var n int
	var failure error
	err = conn.Read(func(fd uintptr) bool {
		_, n, _, _, failure = unix.Recvmsg(int(fd), make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(failure, unix.EAGAIN)
	})
	if err := errors.Join(err, failure); err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.New("it ended first")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.New("it sent something else")
	}
	return fds[0], nil
}
