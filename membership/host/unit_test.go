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

	k3s   bool  // K3s runs etcd, and
	agent *unit // its agent where it is no server
}

// unit is K3s's agent: it starts only behind the fence.
type unit struct {
	data    string
	running bool
	broken  error
}

func (u *unit) Start(context.Context) error {
	if Fenced(u.data) == nil {
		return errors.New("assertion failed")
	}
	u.running = u.broken == nil
	return u.broken
}

func (u *unit) Stop(context.Context) error {
	u.running = false
	return u.broken
}

func (u *unit) State(context.Context) (UnitState, error) {
	return UnitState{Running: u.running}, u.broken
}

// newK3s is a host of a K3s fleet that is no server.
func newK3s(t *testing.T) *machine {
	m := newMachine(t)
	m.k3s, m.agent = true, &unit{data: m.data, running: true}
	d := files{path: m.data}
	if err := errors.Join(os.MkdirAll(m.data, 0o700), d.write(fenceFile, fence{Operation: "prepare"})); err != nil {
		t.Fatal(err)
	}
	return m
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
	if m.k3s {
		if m.agent.running {
			m.t.Error("server and agent run at once")
		}
		m.withDatastore()
		m.running = true
		return nil
	}
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

func (m *machine) StartAgain(ctx context.Context) error {
	if err := errors.Join(m.broken, Fenced(m.data)); err != nil {
		return err
	}
	return errors.Join(m.Stop(ctx), m.Start(ctx))
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
	if m.k3s {
		m.agent.running = Fenced(m.data) != nil
	}
}

func (m *machine) server() *Server {
	m.t.Helper()
	o := Options{Host: "h4", Data: m.data, Datastore: m.datastore, Snapshots: filepath.Join(m.data, "snapshots"), Peer: peer4, Unit: m}
	if m.k3s {
		o.K3s = &K3s{Config: filepath.Join(m.data, "..", "config.yaml.d"), Agent: m.agent}
	}
	s, err := New(o)
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
