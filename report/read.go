package report

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"suffrage/membership"
)

// BadLine is a line of a timeline that could not be read.
type BadLine struct {
	File string
	Line int
	Err  error
}

func (e *BadLine) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

func (e *BadLine) Unwrap() error { return e.Err }

// ErrTooLong is a line that no controller writes.
var ErrTooLong = fmt.Errorf("report: a line of more than %d bytes", membership.MaxMoment)

// Lines reads the moments of one file. A line that cannot be read is an error in
// its place, and the next one is read; after an error of the reader nothing is.
// A last line without its end is being written just now, and is left out.
func Lines(file string, r io.Reader) iter.Seq2[*membership.Moment, error] {
	return func(yield func(*membership.Moment, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		var line []byte
		for n := 1; ; n++ {
			var err error
			line, err = next(in, line[:0])
			switch {
			case err == io.EOF:
				return
			case err != nil && !errors.Is(err, ErrTooLong):
				yield(nil, &BadLine{file, n, err})
				return
			}
			var m membership.Moment
			if err == nil {
				if len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				m, err = membership.ReadMoment(line)
			}
			if err != nil {
				if !yield(nil, &BadLine{file, n, err}) {
					return
				}
				continue
			}
			if !yield(&m, nil) {
				return
			}
		}
	}
}

// next reads one whole line, and passes over one that is too long.
func next(in *bufio.Reader, line []byte) ([]byte, error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > membership.MaxMoment; !long {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil:
			return nil, err
		case long:
			return nil, ErrTooLong
		}
		return line, nil
	}
}

// Merge puts the moments of several timelines in the order of their times: the
// controllers of a fleet lead in turn, each with a timeline on its own host.
// Errors come as they are met.
func Merge(timelines ...iter.Seq2[*membership.Moment, error]) iter.Seq2[*membership.Moment, error] {
	if len(timelines) == 1 {
		return timelines[0]
	}
	return func(yield func(*membership.Moment, error) bool) {
		type source struct {
			next func() (*membership.Moment, error, bool)
			head *membership.Moment
		}
		var open []*source
		// advance gives false where the reader wants no more.
		advance := func(s *source) bool {
			for {
				m, err, ok := s.next()
				s.head = m
				if !ok || err == nil {
					return true
				}
				if !yield(nil, err) {
					return false
				}
			}
		}
		for _, t := range timelines {
			next, stop := iter.Pull2(t)
			defer stop()
			s := &source{next: next}
			if !advance(s) {
				return
			}
			open = append(open, s)
		}
		for {
			var first *source
			for _, s := range open {
				if s.head != nil && (first == nil || s.head.At.Before(first.head.At)) {
					first = s
				}
			}
			if first == nil || !yield(first.head, nil) || !advance(first) {
				return
			}
		}
	}
}
