package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// maxMessage bounds a message over the socket, in bytes.
	maxMessage = 16 << 10
	// unitTime bounds one call over the socket: stopping is the longest.
	unitTime = 2 * time.Minute
)

// Socket is the Unit behind a unix socket at this path. Who may open the socket
// may start and stop that one member; keep it in a directory of mode 0700.
type Socket string

// One request and one reply, each a line of JSON, per connection.
type (
	request struct {
		Do string `json:"do"` // start, stop, restart, state
	}
	reply struct {
		Running bool `json:"running"`
		Starts  int  `json:"starts"`
		// Fenced is a start that was refused, Error what else went wrong.
		Fenced bool   `json:"fenced,omitempty"`
		Error  string `json:"error,omitempty"`
	}
)

// Start is Unit's.
func (s Socket) Start(ctx context.Context) error { _, err := s.ask(ctx, "start"); return err }

// Stop is Unit's.
func (s Socket) Stop(ctx context.Context) error { _, err := s.ask(ctx, "stop"); return err }

// StartAgain is a Restarter's, where the Unit behind it is one.
func (s Socket) StartAgain(ctx context.Context) error { _, err := s.ask(ctx, "restart"); return err }

// State is Unit's.
func (s Socket) State(ctx context.Context) (UnitState, error) {
	r, err := s.ask(ctx, "state")
	return UnitState{Running: r.Running, Starts: r.Starts}, err
}

func (s Socket) ask(ctx context.Context, do string) (r reply, err error) {
	fail := func(err error) (reply, error) { return r, fmt.Errorf("host: %s over %s: %w", do, string(s), err) }
	ctx, cancel := context.WithTimeout(ctx, unitTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", string(s))
	if err != nil {
		return fail(fmt.Errorf("%w: does whatever runs the member run (agent.unit)?", err))
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(request{do}); err != nil {
		return fail(err)
	}
	if err := message(conn, &r); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fail(err)
	}
	switch {
	case r.Fenced:
		return fail(fmt.Errorf("%w: %s", ErrFenced, r.Error))
	case r.Error != "":
		return fail(errors.New(r.Error))
	}
	return r, nil
}

// message reads one line of JSON.
func message(r io.Reader, v any) error {
	line, err := bufio.NewReader(io.LimitReader(r, maxMessage)).ReadBytes('\n')
	if err != nil {
		return err
	}
	return strict(line, v)
}

// ServeUnit answers for a Unit on a listener until the context ends.
func ServeUnit(ctx context.Context, l net.Listener, u Unit) error {
	limited := netutil.LimitListener(l, 8)
	stop := context.AfterFunc(ctx, func() { limited.Close() })
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		conn, err := limited.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("host: serve the unit: %w", err)
		}
		serving.Go(func() {
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			answer(ctx, conn, u)
		})
	}
}

// answer serves one request. Whoever does not listen to the reply misses it.
func answer(ctx context.Context, conn net.Conn, u Unit) {
	ctx, cancel := context.WithTimeout(ctx, unitTime)
	defer cancel()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var q request
	if err := message(conn, &q); err != nil {
		return
	}
	var r reply
	var err error
	switch q.Do {
	case "start":
		err = u.Start(ctx)
	case "stop":
		err = u.Stop(ctx)
	case "restart":
		restarter, can := u.(Restarter)
		if !can {
			err = errors.New("it can start and stop, and not restart as one thing")
			break
		}
		err = restarter.StartAgain(ctx)
	case "state":
	default:
		err = fmt.Errorf("%.40q: it can start, stop, restart and tell the state", q.Do)
	}
	if err == nil {
		var s UnitState
		s, err = u.State(ctx)
		r.Running, r.Starts = s.Running, s.Starts
	}
	if err != nil {
		r.Fenced, r.Error = errors.Is(err, ErrFenced), err.Error()
		if len(r.Error) > maxMessage/4 {
			r.Error = r.Error[:maxMessage/4]
		}
	}
	_ = json.NewEncoder(conn).Encode(r)
}
