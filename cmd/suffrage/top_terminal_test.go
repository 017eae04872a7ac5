package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"suffrage/member/membertest"
)

// terminal is a pseudo-terminal with a program on it.
type terminal struct {
	t           *testing.T
	ours, their *os.File
	cmd         *exec.Cmd
	done        chan error
	before      *term.State

	mu  sync.Mutex
	out bytes.Buffer
}

// onTerminal starts suffrage on a terminal of its own, which is its only one.
func onTerminal(t *testing.T, width, height int, env []string, args ...string) *terminal {
	t.Helper()
	program, err := exec.LookPath("suffrage") // this test, called by that name
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	fd := int(ours.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	their, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, ours: ours, their: their, cmd: exec.Command(program, args...), done: make(chan error, 1)}
	x.resize(width, height)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = their, their, their
	x.cmd.Env = append(os.Environ(), env...)
	if x.before, err = term.GetState(int(their.Fd())); err != nil {
		t.Fatal(err)
	}
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := ours.Read(b)
			x.mu.Lock()
			x.out.Write(b[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { x.done <- x.cmd.Wait() }()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		their.Close() // the last one: the read ends with EIO
		<-read
		ours.Close()
	})
	return x
}

func (x *terminal) resize(width, height int) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(int(x.ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) all() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// picture is the newest whole one, as somebody reads it.
func (x *terminal) picture() string {
	pictures := strings.Split(x.all(), "\x1b[H")
	for i := len(pictures) - 1; i > 0; i-- {
		if text, _, whole := strings.Cut(pictures[i], "\x1b[J"); whole {
			return escapes.ReplaceAllString(text, "")
		}
	}
	return ""
}

// shows waits until every text is in one picture.
func (x *terminal) shows(texts ...string) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		now, missing := x.picture(), ""
		for _, s := range texts {
			if !strings.Contains(now, s) {
				missing = s
			}
		}
		switch {
		case missing == "":
			return
		case time.Now().After(end):
			x.t.Fatalf("never shown: %q in\n%s", missing, now)
		}
	}
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.ours.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for the program's end and gives its exit code.
func (x *terminal) ends() int {
	x.t.Helper()
	select {
	case <-x.done:
	case <-time.After(time.Minute):
		x.t.Fatalf("it does not end:\n%s", x.picture())
	}
	return x.cmd.ProcessState.ExitCode()
}

// top on a real terminal, with real etcd and an agent that does not run.
func TestTopOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("starts etcd")
	}
	c := membertest.New(t, membertest.Options{Size: 1})
	o := newOwner(t, c.Members[0])
	x := onTerminal(t, 100, 30, []string{"NO_COLOR=1"}, "top", "--config", o.settings, "--every", "1s")
	x.shows("suffrage top: fleet", "1 voters of 3", "etcd leader h1", "> h1", "unknown", "below-minimum", "q quit")
	x.press("\r")
	x.shows("suffrage top: host h1", "its agent does not answer")
	x.press("d")
	x.shows("suffrage top: decision", "nothing would be done")
	x.press("o")
	x.shows("suffrage top: operations", "no operation has ended yet")
	x.press("?")
	x.shows("suffrage top: keys", "up and down")
	x.press("\x1b")
	x.shows("suffrage top: fleet")
	x.resize(40, 12) // the kernel tells the program
	x.shows("more lines)")
	for _, line := range strings.Split(x.picture(), "\r\n") {
		if len([]rune(line)) > 40 {
			t.Errorf("on 40 columns a line of %d: %s", len([]rune(line)), line)
		}
	}
	x.press("q")
	if code := x.ends(); code != exitOK {
		t.Errorf("q ends it with %d", code)
	}
	if after, err := term.GetState(int(x.their.Fd())); err != nil || !reflect.DeepEqual(after, x.before) {
		t.Errorf("the terminal's mode is not what it was (%v)", err)
	}
	waitFor(t, "the screen from before is given back", func() bool {
		all := x.all() // what it wrote last may still be on its way
		return strings.HasPrefix(all, enterScreen) && strings.HasSuffix(all, leaveScreen)
	})
	all := x.all()
	if strings.Contains(all, "\x1b[31m") || strings.Contains(all, "\x1b[1m") {
		t.Error("colours in spite of NO_COLOR")
	}

	x = onTerminal(t, 100, 30, nil, "top", "--config", o.settings)
	x.shows("> h1", "unknown")
	if !strings.Contains(x.all(), yellow) {
		t.Error("no colours")
	}
	x.press("\x03") // Ctrl-C
	if code := x.ends(); code != exitOK {
		t.Errorf("Ctrl-C ends it with %d", code)
	}
}

func TestTopNeedsATerminal(t *testing.T) {
	var out, notes bytes.Buffer
	for args, want := range map[string]string{"top": "needs a terminal", "top --every 1ms": "allowed are 1s to 1m0s", "top -o json": "suffrage status -o json"} {
		if code := run(t.Context(), strings.Fields(args), &out, &notes); code != exitUsage || !strings.Contains(notes.String(), want) {
			t.Errorf("%s: code %d, %s", args, code, notes.String())
		}
	}
}
