package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/history"
)

// Members is one member list, as a quorum had it.
type Members struct {
	// At is since the recording began.
	At      time.Duration `json:"at"`
	Cluster string        `json:"cluster"`
	// Voters and Learners are names of hosts, and the peer URL of who has not
	// started yet; sorted.
	Voters   []string `json:"voters"`
	Learners []string `json:"learners,omitempty"`
}

// Rules are what has to hold all the time, by which a run is judged.
type Rules struct {
	// Least and Most are how few and how many may vote at any time.
	Least int `json:"least"`
	Most  int `json:"most"`
	// Outage: there is no quorum for a while, so writes may stay without an answer.
	Outage bool `json:"outage,omitempty"`
	// Clusters is how many cluster IDs there may be one after the other: two
	// where the owner restores.
	Clusters int `json:"clusters"`
}

// Recording is all of one run that can be judged without its fleet.
type Recording struct {
	Rules      Rules
	History    history.History
	Writes     history.Writes
	Members    []Members
	Operations []membership.Operation
}

// The files of a recording's directory.
const (
	rulesFile      = "rules.json"
	historyFile    = "history.jsonl"
	writesFile     = "writes.json"
	membersFile    = "members.json"
	operationsFile = "operations.json"
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
		if err != nil {
			return nil, fmt.Errorf("record: %s: %w", name, err)
		}
	}
	return r, nil
}

func (r *Recording) parts() map[string]any {
	return map[string]any{rulesFile: &r.Rules, writesFile: &r.Writes, membersFile: &r.Members, operationsFile: &r.Operations}
}
