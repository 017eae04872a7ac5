package demo

import (
	"context"
	"errors"
	"io"
	"time"
)

const (
	// chunkSize and lineChunks bound a delay line at 1 MiB. A line that is full
	// stops reading, so TCP's own back-pressure reaches the sender: at 150 ms
	// that is 7 MB/s, more than five hosts on one disk can write.
	chunkSize  = 4 << 10
	lineChunks = 256
)

// chunk is what one read gave, and when it may be passed on.
type chunk struct {
	bytes []byte
	due   time.Time
}

// delayLine copies src to dst in order, each chunk delay() later than it was
// read. A delay that shrinks never lets bytes overtake others. It returns when
// src has ended and all is written (nil), when either end fails, or when ctx
// ends. abort must make a read of src that is under way return: it is called
// when nothing can be written any more.
func delayLine(ctx context.Context, dst io.Writer, src io.Reader, delay func() time.Duration, abort func()) error {
	line := make(chan chunk, lineChunks)
	broken := make(chan struct{})
	read := make(chan error, 1)
	go func() {
		defer close(line)
		read <- fill(line, src, delay, broken)
	}()
	err := drain(ctx, dst, line)
	close(broken)
	if err != nil {
		abort()
		<-read
		return err
	}
	return <-read
}

// fill reads until the end, a failure, or until nobody drains any more.
func fill(line chan<- chunk, src io.Reader, delay func() time.Duration, broken <-chan struct{}) error {
	buf := make([]byte, chunkSize)
	var last time.Time
	for {
		n, err := src.Read(buf)
		if n > 0 {
			due := time.Now().Add(delay())
			if due.Before(last) {
				due = last
			}
			last = due
			select {
			case line <- chunk{append([]byte(nil), buf[:n]...), due}:
			case <-broken:
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// drain writes each chunk when it is due.
func drain(ctx context.Context, dst io.Writer, line <-chan chunk) error {
	wait := time.NewTimer(time.Hour)
	defer wait.Stop()
	for c := range line {
		if d := time.Until(c.due); d > 0 {
			wait.Reset(d)
			select {
			case <-wait.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if _, err := dst.Write(c.bytes); err != nil {
			return err
		}
	}
	return nil
}
