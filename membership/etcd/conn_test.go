package etcd

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ended is a connection that the other end has left, with its last words unread.
type ended struct {
	net.Conn
	words error
}

func (e ended) Write([]byte) (int, error)       { return 0, &net.OpError{Op: "write", Err: syscall.EPIPE} }
func (e ended) Read([]byte) (int, error)        { return 0, e.words }
func (e ended) SetReadDeadline(time.Time) error { return nil }

func TestAFailedWriteTellsTheLastWords(t *testing.T) {
	for _, test := range []struct {
		why   string
		words error
		want  string
	}{
		{"TLS 1.3 asks for the client's certificate after the handshake", errors.New("remote error: tls: certificate required"), "requires a client certificate"},
		{"nothing was said in time", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "closed before any answer"},
	} {
		c := &Conn{Endpoint: "https://h1:2379"}
		if _, err := (&watched{Conn: ended{words: test.words}, c: c}).Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: write gave %v, not its own error", test.why, err)
		}
		if what, _ := Explain(c.err, c.Endpoint); !strings.Contains(what, test.want) {
			t.Errorf("%s: %q, want %q", test.why, what, test.want)
		}
	}
}
