package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"suffrage/lease"
	"suffrage/lease/etcd"
	"suffrage/member/membertest"
)

const contenderVariable = "SUFFRAGE_LEASE_CONTENDER"

// contenderMain is a process that contends for the Lease, when this one was
// started to be one. It says "held TERM JOURNAL"; for each line that it reads it
// checks the Lease and says "act TERM" or "refused"; it says how it ended.
func contenderMain() {
	text := os.Getenv(contenderVariable)
	if text == "" {
		return
	}
	host, endpoints, _ := strings.Cut(text, " ")
	cl, err := dial(strings.Split(endpoints, ","))
	if err != nil {
		fmt.Println("ended", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = lease.Run(ctx, timing(), etcd.New(cl), lease.NewHolder(host), "test", func(ctx context.Context, h *lease.Held) error {
		fmt.Println("held", h.Term(), string(h.Journal()))
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			err := h.Check(ctx)
			if err == nil {
				err = h.Write(ctx, lines.Bytes())
			}
			if err != nil {
				fmt.Println("refused", err)
				continue
			}
			fmt.Println("act", h.Term())
		}
		return ctx.Err()
	})
	fmt.Println("ended", errors.Is(err, lease.ErrLost), err)
	os.Exit(0)
}

type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func contender(t *testing.T, c *membertest.Cluster, host string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(self), lines: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), contenderVariable+"="+host+" "+strings.Join(c.Endpoints(), ","))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-done
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// expect waits for the next line, which must begin with this.
func (p *process) expect(begin string) string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok || !strings.HasPrefix(line, begin) {
			p.t.Fatalf("process says %q, want %q", line, begin)
		}
		return line
	case <-time.After(membertest.Patience):
		p.t.Fatalf("process does not say %q", begin)
		return ""
	}
}

// S097 with processes and etcd as they are: the holder is stopped past its
// Lease, another takes it and acts, the first goes on: it changes nothing.
func TestFrozenHolder(t *testing.T) {
	t.Parallel()
	c := membertest.New(t, membertest.Options{})
	if err := lease.Create(patient(t), etcd.New(clientOf(t, c)), timing().Duration); err != nil {
		t.Fatal(err)
	}
	a := contender(t, c, "h1")
	a.expect("held")
	a.say("step 6")
	a.expect("act")

	a.signal(syscall.SIGSTOP)
	b := contender(t, c, "h2")
	held := b.expect("held")
	if !strings.HasSuffix(held, "step 6") {
		t.Errorf("the second holder says %q, want the first one's journal", held)
	}
	b.say("step 7")
	b.expect("act")

	a.say("step 7 once more") // it reads this the moment it goes on
	a.signal(syscall.SIGCONT)
	a.expect("refused")
	a.in.Close()
	if end := a.expect("ended"); !strings.HasPrefix(end, "ended true") {
		t.Errorf("the first holder %s, want ErrLost", end)
	}
	b.say("step 8") // it was not disturbed
	b.expect("act")
	b.in.Close()
	b.expect("ended false <nil>")
}

// The same with kill -9, and with a stop that is short enough.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	c := membertest.New(t, membertest.Options{})
	if err := lease.Create(patient(t), etcd.New(clientOf(t, c)), timing().Duration); err != nil {
		t.Fatal(err)
	}
	a := contender(t, c, "h1")
	a.expect("held")
	a.signal(syscall.SIGSTOP)
	time.Sleep(time.Second)
	a.signal(syscall.SIGCONT)
	a.say("step 3")
	a.expect("act")
	a.signal(syscall.SIGKILL)
	again := contender(t, c, "h1") // the same host: it does not inherit, it waits
	began := time.Now()
	if held := again.expect("held"); !strings.HasSuffix(held, "step 3") {
		t.Errorf("got %q, want the journal", held)
	}
	if waited := time.Since(began); waited < timing().Duration.Std()-time.Second {
		t.Errorf("a restarted process had the Lease after %v", waited)
	}
	// SIGTERM releases.
	again.signal(syscall.SIGTERM)
	again.in.Close()
	again.expect("ended false")
	next := contender(t, c, "h3")
	next.expect("held")
}
