package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Run is one run of one scenario.
type Run struct {
	Scenario string    `json:"scenario"`
	Began    time.Time `json:"began"`
	// Seconds is how long it took, with its start and its end.
	Seconds float64 `json:"seconds"`
	Passed  bool    `json:"passed"`
	// Failed is the first thing that was not as it has to be, empty for none.
	Failed string `json:"failed,omitempty"`
	// Faults are those that were made, in order, in the scenario's words.
	Faults []string `json:"faults,omitempty"`
	// Operations is how many puts and gets were judged, Acknowledged how many
	// puts were acknowledged, Unacknowledged how many writes no try within ten
	// seconds carried out.
	Operations     int `json:"operations"`
	Acknowledged   int `json:"acknowledged"`
	Unacknowledged int `json:"unacknowledged,omitempty"`
	// Gap is the longest time without an acknowledged put, in seconds.
	Gap float64 `json:"gap"`
	// Well is from the last fault, or from its end where it had one, until the
	// fleet was as it has to be, in seconds; 0 where it never was.
	Well float64 `json:"well,omitempty"`
	// Load is the machine's load average over a minute, at the end.
	Load float64 `json:"load"`
}

// Append adds a run to a file, which is made where there is none.
func Append(file string, r Run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("record: append a run: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("record: append to %s: %w", file, err)
	}
	return nil
}

// maxLine bounds one line of what is read, in bytes; maxLines bounds how many.
const (
	maxLine  = 1 << 20
	maxLines = 1 << 20
)

// Read reads what Append wrote. An error names the line, from 1 on.
func Read(r io.Reader) ([]Run, error) {
	var runs []Run
	err := lines(r, func(line []byte) error {
		var run Run
		if err := json.Unmarshal(line, &run); err != nil {
			return err
		}
		if run.Scenario == "" {
			return errors.New("it names no scenario")
		}
		runs = append(runs, run)
		return nil
	})
	return runs, err
}

// lines calls do for each line that is not empty.
func lines(r io.Reader, do func([]byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	n := 0
	for s.Scan() {
		if n++; n > maxLines {
			return fmt.Errorf("record: more than %d lines", maxLines)
		}
		if len(s.Bytes()) == 0 {
			continue
		}
		if err := do(s.Bytes()); err != nil {
			return fmt.Errorf("record: line %d: %w", n, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("record: line %d: %w", n+1, err)
	}
	return nil
}
