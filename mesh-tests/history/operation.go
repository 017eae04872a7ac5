package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Operation is one call of one client.
type Operation struct {
	Client int    `json:"client"`
	Key    string `json:"key"`
	// Put is what was written; empty for a get. No two puts write the same.
	Put string `json:"put,omitempty"`
	// Got is what a get found, empty for nothing.
	Got string `json:"got,omitempty"`
	// Call and Return are since the history began, by one monotonic clock.
	Call   time.Duration `json:"call"`
	Return time.Duration `json:"return"`
	// Unknown: the call had no answer.
	Unknown bool `json:"unknown,omitempty"`
}

// History is what was done, in any order.
type History []Operation

// Write writes it, one operation a line.
func (h History) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	for _, o := range h {
		if err := e.Encode(o); err != nil {
			return fmt.Errorf("history: write: %w", err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("history: write: %w", err)
	}
	return nil
}

// maxOperations bounds what is read: an hour of ten clients.
const maxOperations = 4_000_000

// Read reads what Write wrote. An error names the operation, from 1 on.
func Read(r io.Reader) (History, error) {
	var h History
	d := json.NewDecoder(bufio.NewReader(r))
	d.DisallowUnknownFields()
	for {
		var o Operation
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("history: operation %d: %w", len(h)+1, err)
		case o.Key == "" || o.Call < 0 || !o.Unknown && o.Return < o.Call:
			return nil, fmt.Errorf("history: operation %d: it needs a key, and to return after it was called", len(h)+1)
		case len(h) == maxOperations:
			return nil, fmt.Errorf("history: more than %d operations", maxOperations)
		}
		h = append(h, o)
	}
}
