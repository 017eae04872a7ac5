package probes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// pongIdle is how long a connection may stay silent before the answering side
// gives it up. It is longer than any period that a configuration allows.
const pongIdle = 5 * time.Minute

// ServePings answers ping frames until the connection ends, and closes it. Nil
// means that the other side closed it between two frames.
func ServePings(conn net.Conn) error {
	defer conn.Close()
	in, out := make([]byte, FrameSize), make([]byte, 0, FrameSize+MaxPadding)
	for {
		if err := conn.SetDeadline(time.Now().Add(pongIdle)); err != nil {
			return fmt.Errorf("probes: answer pings of %s: %w", conn.RemoteAddr(), err)
		}
		f, err := ReadFrame(conn, in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		read := time.Now()
		if err == nil && f.Answer {
			err = errors.New("an answer where a ping belongs")
		}
		if err != nil {
			return fmt.Errorf("probes: answer pings of %s: %w", conn.RemoteAddr(), err)
		}
		f.Answer, f.T2, f.T3 = true, read.UnixNano(), time.Now().UnixNano()
		if _, err := conn.Write(f.Append(out[:0])); err != nil {
			return fmt.Errorf("probes: answer pings of %s: %w", conn.RemoteAddr(), err)
		}
	}
}
