package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/history"
)

// Recording is all of one run that can be judged without its fleet.
type Recording struct {
	Rules     Rules
	History   history.History
	Writes    history.Writes
	Members   []Members
	Decisions []Decision
	// Operations ended; Open did not, nil for none.
	Operations []membership.Operation
	Open       *membership.Operation
	Metrics    []Page
}

// Page is what one service on a host told Prometheus.
type Page struct {
	At      time.Duration `json:"at"` // since the recording began
	Host    string        `json:"host"`
	Service string        `json:"service"`
	Text    string        `json:"text"`
}

// The files of a recording's directory.
const (
	rulesFile      = "rules.json"
	historyFile    = "history.jsonl"
	writesFile     = "writes.json"
	membersFile    = "members.json"
	decisionsFile  = "decisions.json"
	operationsFile = "operations.json"
	openFile       = "open.json"
	metricsFile    = "metrics.json"
)

// Write writes it into a directory that there is.
func (r *Recording) Write(dir string) error {
	f, err := os.Create(filepath.Join(dir, historyFile))
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	errs := []error{errors.Join(r.History.Write(f), f.Close())}
	for name, part := range r.parts() {
		b, err := json.MarshalIndent(part, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("record: write to %s: %w", dir, err)
	}
	return nil
}

// Open reads what Write wrote.
func Open(dir string) (*Recording, error) {
	r := &Recording{}
	f, err := os.Open(filepath.Join(dir, historyFile))
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	if r.History, err = history.Read(f); err != nil {
		return nil, err
	}
	for name, part := range r.parts() {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(b, part)
		}
		if added[name] && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("record: %s: %w", name, err)
		}
	}
	return r, nil
}

func (r *Recording) parts() map[string]any {
	return map[string]any{rulesFile: &r.Rules, writesFile: &r.Writes, membersFile: &r.Members, decisionsFile: &r.Decisions,
		operationsFile: &r.Operations, openFile: &r.Open, metricsFile: &r.Metrics}
}

// added are the files that recordings of an earlier form do not have.
var added = map[string]bool{decisionsFile: true, openFile: true, metricsFile: true}
