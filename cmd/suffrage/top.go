package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The shortest and the longest time between two looks of top.
const (
	minEvery = time.Second
	maxEvery = time.Minute
)

func newTopCmd() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "top",
		Short: "The fleet at a glance in this terminal, looked at again and again",
		Long: `Shows what status, explain, plan and operations show, in one screen that looks
again by itself. It looks at etcd and the agents itself, so it works from any host
with a client certificate while the controller is down. It changes nothing.

A figure with ! is why its host is unfit; ? is a window that is not full yet. Where
the terminal has no room for a column it says which are left out, one with ! never.

Keys: up and down (or k and j) choose a host or an operation, and scroll beyond the
last; enter looks at it, d at the decision, o at the operations, f or escape go back
to the fleet, r looks at once, ? shows these keys, q ends.

NO_COLOR, set to anything, takes the colours away; nothing is said by them alone.

Exit codes: 0 ended by q or Ctrl-C; 1 the terminal was lost; 2 no terminal, wrong
flags or settings.`,
		Example: "  suffrage top\n  suffrage top --every 10s",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if every < minEvery || every > maxEvery {
				return usage(fmt.Errorf("--every %v: allowed are %v to %v", every, minEvery, maxEvery))
			}
			if wantsJSON(c) {
				return usage(errors.New("top is for people; suffrage status -o json has the same once"))
			}
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return usage(errors.New("top needs a terminal for its input and its output; suffrage status prints the same once"))
			}
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			return f.top(c.Context(), os.Stdin, os.Stdout, every)
		},
	}
	c.Flags().DurationVar(&every, "every", 2*time.Second, fmt.Sprintf("time between two looks, %v to %v", minEvery, maxEvery))
	return c
}

// What a terminal is told: another screen and no cursor, and both back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// seen is one look, or why there is none.
type seen struct {
	look look
	at   time.Time
	err  error
}

// top draws until it is ended. The terminal is given back however it ends, but
// for a kill.
func (f *fleet) top(ctx context.Context, in, out *os.File, every time.Duration) error {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("top: terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	fmt.Fprint(out, enterScreen)
	defer fmt.Fprint(out, leaveScreen)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looks, again, keys := make(chan seen), make(chan struct{}, 1), make(chan key)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.watch(ctx, every, again, looks)
	}()
	defer func() { cancel(); <-done }()
	// A read of a terminal cannot be ended; the process is about to.
	go readKeys(ctx, in, keys)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)

	s := &screen{from: f, colours: os.Getenv("NO_COLOR") == ""}
	for {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return fmt.Errorf("top: terminal: %w", err)
		}
		if err := s.draw(out, width, height, time.Now()); err != nil {
			return fmt.Errorf("top: terminal: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case <-time.After(time.Second): // the ages grow
		case l := <-looks:
			s.take(l)
		case k, open := <-keys:
			switch {
			case !open:
				return errors.New("top: the terminal is gone")
			case k == keyQuit:
				return nil
			case k == keyAgain:
				select {
				case again <- struct{}{}:
				default:
				}
			default:
				s.press(k)
			}
		}
	}
}

// watch looks again and again. What the agents told before is kept, so that each
// look pulls only what is new.
func (f *fleet) watch(ctx context.Context, every time.Duration, again <-chan struct{}, looks chan<- seen) {
	g := f.gatherer(nil)
	for {
		l, err := f.lookBy(ctx, g)
		select {
		case looks <- seen{l, time.Now(), err}:
		case <-ctx.Done():
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-time.After(every):
		}
	}
}

// draw writes one picture over the one before: nothing flickers.
func (s *screen) draw(w io.Writer, width, height int, now time.Time) error {
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for i, line := range s.lines(width, height, now) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, err := w.Write(b.Bytes())
	return err
}
