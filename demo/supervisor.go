package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a process gets between SIGTERM and SIGKILL. An etcd
// leader tries to hand over for longer than this when its peers stop too; the
// demo's data is not worth the wait.
const stopGrace = 3 * time.Second

// Process says what to start.
type Process struct {
	Name string // what people call it: "h3 member"
	Args []string
	Log  string // the file that takes its output, appended to
	// Files become descriptors 3, 4, … of the process.
	Files []*os.File
}

// Supervisor starts processes and sees to it that they end: each is in its own
// process group, so that a terminal's Ctrl-C reaches only the demo, and each
// dies with the demo by the kernel's parent-death signal.
//
// That signal fires when the *thread* that started the process ends, not the
// process it belongs to (prctl(2), PR_SET_PDEATHSIG). So one goroutine, locked
// to its thread for as long as Run lasts, starts them all.
type Supervisor struct {
	start chan startRequest
	died  chan *Child

	mu       sync.Mutex
	children []*Child
}

type startRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// NewSupervisor makes one. Nothing can be started before Run is called.
func NewSupervisor() *Supervisor {
	return &Supervisor{start: make(chan startRequest), died: make(chan *Child, 64)}
}

// Run starts what Start asks for until ctx ends, then stops every process and
// waits for each.
func (s *Supervisor) Run(ctx context.Context) error {
	// Never unlocked: when this goroutine returns its thread ends with it, and
	// whatever were left would get its signal now.
	runtime.LockOSThread()
	raise()
	for {
		select {
		case r := <-s.start:
			r.done <- r.cmd.Start()
		case <-ctx.Done():
			s.stopAll()
			return nil
		}
	}
}

// Start starts a process and returns at once.
func (s *Supervisor) Start(ctx context.Context, p Process) (*Child, error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("demo: log of %s: %w", p.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = p.Files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r := startRequest{cmd, make(chan error, 1)}
	select {
	case s.start <- r:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := <-r.done; err != nil {
		return nil, fmt.Errorf("demo: start %s: %w", p.Name, err)
	}
	c := &Child{Process: p, PID: cmd.Process.Pid, cmd: cmd, ended: make(chan struct{})}
	s.mu.Lock()
	s.children = append(s.children, c)
	s.mu.Unlock()
	go s.wait(c)
	return c, nil
}

// Died gives the processes that ended without being told to.
func (s *Supervisor) Died() <-chan *Child { return s.died }

func (s *Supervisor) wait(c *Child) {
	c.err = c.cmd.Wait()
	close(c.ended)
	if s.Told(c) {
		return
	}
	select {
	case s.died <- c:
	default: // nobody listens; the log file still has it
	}
}

// Stop ends one process: SIGTERM, and SIGKILL after a few seconds.
func (s *Supervisor) Stop(c *Child) {
	s.mu.Lock()
	c.told = true
	s.mu.Unlock()
	c.signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(stopGrace):
	}
	// The whole group, also after a clean end: it may have left a child.
	c.signal(syscall.SIGKILL)
	<-c.ended
}

// Told reports whether the process was told to end.
func (s *Supervisor) Told(c *Child) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.told
}

func (s *Supervisor) stopAll() {
	s.mu.Lock()
	children := s.children
	s.mu.Unlock()
	var stopped sync.WaitGroup
	for _, c := range children {
		stopped.Go(func() { s.Stop(c) })
	}
	stopped.Wait()
}

// Child is a started process.
type Child struct {
	Process
	PID   int
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // set before ended is closed
	told  bool  // under Supervisor.mu
}

// signal goes to the process group. The group's number stays taken while any
// of it lives; after that nobody gets the signal.
func (c *Child) signal(sig syscall.Signal) {
	_ = syscall.Kill(-c.PID, sig)
}

// Ended is closed when the process has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Exit says how the process ended, with the end of its log and where the rest
// is. It must not be called before the process has ended.
func (c *Child) Exit() error {
	<-c.ended
	how := "ended with exit status 0"
	if c.err != nil {
		how = "ended: " + c.err.Error()
	}
	var exit *exec.ExitError
	if errors.As(c.err, &exit) {
		how = "ended: " + exit.ProcessState.String()
	}
	return fmt.Errorf("demo: %s %s; the last lines of %s:\n%s", c.Name, how, c.Log, logTail(c.Log))
}
