package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"suffrage/identity"
)

// fileState tells a changed file from the one before.
type fileState struct {
	modified time.Time
	size     int64
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{info.ModTime(), info.Size()}
}

// readRoster takes up the roster file, if this host is in it with this key.
func (a *Agent) readRoster() error {
	a.file = stateOf(a.o.Roster)
	roster, err := identity.LoadRoster(a.o.Roster)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	self, ok := roster.ByName(a.o.Host)
	if !ok {
		return fmt.Errorf("agent: %s: this host, %s, is not in it: add its entry, as 'suffrage identity show' prints it", a.o.Roster, a.o.Host)
	}
	if self.Fingerprint != a.o.Key.Fingerprint() {
		return fmt.Errorf("agent: %s: this host, %s, has the key %s, its entry has %s: correct it in the roster of every host", a.o.Roster, a.o.Host, a.o.Key.Fingerprint(), self.Fingerprint)
	}
	if before := a.roster.Load(); before != nil {
		if old, _ := before.ByName(a.o.Host); old.Address != self.Address {
			return fmt.Errorf("agent: %s: the address of this host, %s, changed from %s to %s: a host keeps its mesh address; start the agent again if it is meant", a.o.Roster, a.o.Host, old.Address, self.Address)
		}
	}
	a.roster.Store(roster)
	return nil
}

// watchRoster takes up a changed roster. It runs as a probe: reading a file can
// hang, and a roster that is not taken up has to show.
func (a *Agent) watchRoster(context.Context, time.Duration) error {
	if stateOf(a.o.Roster) == a.file {
		return a.fileErr
	}
	if a.fileErr = a.readRoster(); a.fileErr != nil {
		a.fileErr = fmt.Errorf("%w (the roster from before it stays)", a.fileErr)
		return a.fileErr
	}
	a.log.Info("the changed roster is taken up", "hosts", a.roster.Load().Len())
	return nil
}

// meet makes the peers those of the roster, when that is a new one. A host whose
// address or key changed is another one: what was measured before does not tell
// of it.
func (a *Agent) meet(ctx context.Context) {
	roster := a.roster.Load()
	if roster == a.met {
		return
	}
	a.met = roster
	wanted := map[string]identity.RosterHost{}
	for _, h := range a.others() {
		wanted[h.Name] = h
	}
	for name, p := range a.peers {
		if wanted[name] != p.host {
			p.leave()
			delete(a.peers, name)
		}
	}
	for name, h := range wanted {
		if a.peers[name] == nil {
			a.peers[name] = a.follow(ctx, h)
		}
	}
}
