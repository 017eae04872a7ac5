package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a host as it behaves: a unit whose member honours the fence, makes
// a datastore where it may join and goes on with one that is there.
type machine struct {
	t         *testing.T
	data      string
	datastore string

	mu      sync.Mutex
	running bool
	starts  int
	broken  error // the unit's manager does not answer
	deaf    bool  // the manager starts whatever the fence says
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	return &machine{t: t, data: data, datastore: filepath.Join(data, "etcd")}
}

// withDatastore lays one down, as a member of the first days has it.
func (m *machine) withDatastore() *machine {
	for _, d := range []string{"wal", "snap"} {
		if err := os.MkdirAll(filepath.Join(m.datastore, "member", d), 0o700); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, f := range []string{"wal/0.wal", "snap/db"} {
		if err := os.WriteFile(filepath.Join(m.datastore, "member", f), []byte("votes"), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	return m
}

func (m *machine) Start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	if err := Fenced(m.data); err != nil && !m.deaf {
		return err
	}
	if m.running {
		return nil
	}
	m.starts++
	if err := Begin(ctx, m.data); err != nil {
		return nil // the process was started, and ended by itself
	}
	has, err := hasDatastore(m.datastore)
	if err != nil {
		return err
	}
	if !has {
		j, err := Joining(m.data)
		if err != nil || j == nil {
			return err // it ends by itself: there is no datastore
		}
		m.withDatastore()
		if err := Joined(m.data); err != nil {
			return err
		}
	}
	m.running = true
	return nil
}

func (m *machine) Stop(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = false
	return m.broken
}

func (m *machine) State(context.Context) (UnitState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return UnitState{Running: m.running, Starts: m.starts}, m.broken
}

// reboot ends everything that is not a file.
func (m *machine) reboot() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running, m.starts = false, 0
}

func (m *machine) server() *Server {
	m.t.Helper()
	s, err := New(Options{Host: "h4", Data: m.data, Datastore: m.datastore, Snapshots: filepath.Join(m.data, "snapshots"), Peer: peer4, Unit: m})
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// datastores are all that there are, in place and aside.
func (m *machine) datastores() []string {
	got, err := filepath.Glob(m.datastore + "*")
	if err != nil {
		m.t.Fatal(err)
	}
	return got
}

// keepUp is what systemd does with Restart=always.
func (m *machine) keepUp() error {
	err := m.Start(m.t.Context())
	if !errors.Is(err, ErrFenced) {
		return err
	}
	return nil
}

const (
	peer1 = "https://127.0.0.1:2380"
	peer4 = "https://127.0.0.4:2380"
)
