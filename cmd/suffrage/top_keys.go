package main

import (
	"context"
	"io"
)

// key is what somebody pressed, as far as top knows it.
type key int

const (
	keyNone key = iota
	keyQuit
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyEnter
	keyFleet
	keyDecision
	keyOperations
	keyHelp
	keyAgain
)

// pressed are the bytes that a terminal in raw mode sends. Arrows come in two
// forms: ESC [ A, and ESC O A in application mode.
var pressed = map[string]key{
	"q": keyQuit, "Q": keyQuit, "\x03": keyQuit, "\x04": keyQuit,
	"k": keyUp, "\x1b[A": keyUp, "\x1bOA": keyUp,
	"j": keyDown, "\x1b[B": keyDown, "\x1bOB": keyDown,
	"\x1b[5~": keyPageUp, "b": keyPageUp, "\x1b[6~": keyPageDown, " ": keyPageDown,
	"\r": keyEnter, "\n": keyEnter, "\x1b[C": keyEnter, "\x1bOC": keyEnter,
	"f": keyFleet, "\x1b": keyFleet, "\x7f": keyFleet, "\x1b[D": keyFleet, "\x1bOD": keyFleet,
	"d": keyDecision, "p": keyDecision, "o": keyOperations,
	"?": keyHelp, "h": keyHelp, "r": keyAgain,
}

// parseKeys takes what one read brought apart. An escape by itself is the key; one
// with a tail is a key that the terminal spells out, known or not.
func parseKeys(b []byte) []key {
	var out []key
	for len(b) > 0 {
		n := 1
		if b[0] == 0x1b && len(b) > 2 && (b[1] == '[' || b[1] == 'O') {
			n = 3
			for n < len(b) && b[1] == '[' && !final(b[n-1]) {
				n++
			}
		}
		if k := pressed[string(b[:n])]; k != keyNone {
			out = append(out, k)
		}
		b = b[n:]
	}
	return out
}

// final reports whether a byte ends a control sequence (ECMA-48, 5.4).
func final(c byte) bool { return c >= 0x40 && c <= 0x7e }

// readKeys sends keys until the input ends, then closes the channel.
func readKeys(ctx context.Context, r io.Reader, keys chan<- key) {
	defer close(keys)
	b := make([]byte, 64)
	for {
		n, err := r.Read(b)
		for _, k := range parseKeys(b[:n]) {
			select {
			case keys <- k:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}
