package host

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// SystemdUnit is the form of a unit's name that a Systemd can have.
var SystemdUnit = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:_.@-]{0,240}\.service$`)

// systemBus is where every system bus listens (D-Bus specification, "Well-known
// message bus instances").
const systemBus = "unix:path=/run/dbus/system_bus_socket"

// Systemd is the Unit that systemd runs. It names this one unit to systemd and no
// other, and asks for its start, its stop and its properties; there is no shell.
//
// The unit has to refuse its own start while the fence is up:
//
//	AssertPathExists=!DATA/fence.json
//
// An assertion and not a condition: systemd calls a start that a condition
// prevented a success, and of one that an assertion prevented it says so
// (systemd.unit(5)). With either, Restart= gives up after one refused start,
// which NRestarts counts like one that took place; so starts are told apart by
// their invocation ID, which a refused one does not get.
//
// What counts is the unit as systemd has loaded it, never a file. A weakness:
// systemd looks at assertions when a unit starts and not while it runs, so behind
// a running member there is no start to try. Then the assertion that it has
// loaded is the proof, and retiring tries a start once the member has ended.
type Systemd struct {
	// Name is the unit: suffrage-member.service.
	Name string
	// Data is the host's data directory, where the fence is.
	Data string
	// Bus is the address of another system bus than this machine's.
	Bus string
	// K3s: the unit is k3s.service. Its start ends long after its process is there,
	// which is what Start waits for.
	K3s bool
	// DataDir and Config are what the settings say of K3s: its data directory, and
	// that of its drop-ins. Its command line must not say otherwise; empty, it may.
	DataDir, Config string
	// Behind: the unit is k3s-agent.service, which starts only while the fence is
	// up, where the server does not.
	Behind bool
}

// Check says why the unit could not be run: there is no systemd, no such unit, no
// permission, or it does not honour the fence. It changes nothing.
func (u Systemd) Check(ctx context.Context) error {
	return u.with(ctx, "look at", func(c *connection) error {
		p, err := c.properties(ctx)
		if err != nil {
			return err
		}
		if err := u.safe(p); err != nil {
			return err
		}
		// A reference ends with the connection and asks for the right to act on
		// the unit.
		return c.object().CallWithContext(ctx, "org.freedesktop.systemd1.Unit.Ref", 0).Err
	})
}

// Start is Unit's.
func (u Systemd) Start(ctx context.Context) error {
	return u.with(ctx, "start", func(c *connection) error {
		p, err := c.properties(ctx)
		if err != nil {
			return err
		}
		// Without it the member could not be fenced later either.
		if err := u.honours(p); err != nil {
			return err
		}
		fenced := Fenced(u.Data)
		if u.Behind {
			fenced = nil
		}
		if p.running() {
			return fenced // nothing is to be started, or to be tried
		}
		if fenced == nil { // else it is tried, and the command line is no reason why not
			if err := u.takes(p); err != nil {
				return err
			}
		}
		enough := func() bool { return false }
		if u.K3s || u.Behind {
			enough = func() bool { p, err := c.properties(ctx); return err == nil && p.pid != 0 }
		}
		switch result, err := c.job(ctx, c.StartUnitContext, enough); {
		case err != nil:
			return err
		case result == "done":
			return nil
		case result == "assert" && fenced != nil:
			return fenced
		default:
			return fmt.Errorf("it ended with %q: see journalctl -u %s", result, u.Name)
		}
	})
}

// Stop is Unit's.
func (u Systemd) Stop(ctx context.Context) error {
	return u.with(ctx, "stop", func(c *connection) error {
		// A unit that does not exist has not ended: nobody knows what runs.
		if _, err := c.properties(ctx); err != nil {
			return err
		}
		result, err := c.job(ctx, c.StopUnitContext, nil)
		if err == nil && result != "done" {
			err = fmt.Errorf("it ended with %q: see journalctl -u %s", result, u.Name)
		}
		return err
	})
}

// StartAgain is a Restarter's, for K3s's unit.
func (u Systemd) StartAgain(ctx context.Context) error {
	return u.with(ctx, "restart", func(c *connection) error {
		was, err := c.properties(ctx)
		if err != nil {
			return err
		}
		// A start that the fence refuses would leave it stopped.
		if err := errors.Join(u.safe(was), Fenced(u.Data)); err != nil {
			return err
		}
		enough := func() bool {
			p, err := c.properties(ctx)
			return err == nil && p.pid != 0 && p.invocation != was.invocation
		}
		result, err := c.job(ctx, c.RestartUnitContext, enough)
		if err == nil && result != "done" {
			err = fmt.Errorf("it ended with %q: see journalctl -u %s", result, u.Name)
		}
		return err
	})
}

// State is Unit's. Starts stays 0: systemd does not count those that were asked for.
func (u Systemd) State(ctx context.Context) (s UnitState, err error) {
	err = u.with(ctx, "state of", func(c *connection) error {
		p, err := c.properties(ctx)
		s = UnitState{Running: p.running(), Invocation: p.invocation, EtcdOnly: u.K3s && p.etcdOnly()}
		return err
	})
	return s, err
}

// safe gives nil for a unit that starts where it may and not where it must not.
func (u Systemd) safe(p properties) error {
	if err := u.honours(p); err != nil {
		return err
	}
	return u.takes(p)
}

// takes gives nil for a unit whose command line leaves the settings to files.
func (u Systemd) takes(p properties) error {
	if !u.K3s {
		return nil
	}
	for _, s := range p.starts {
		if err := u.Takes(s.Args); err != nil {
			return err
		}
	}
	return nil
}

// honours gives nil for a unit that refuses a start while the fence is up.
func (u Systemd) honours(p properties) error {
	fence := filepath.Join(u.Data, fenceFile)
	switch {
	case p.loaded == "masked":
		return fmt.Errorf("it is masked, so nothing can start it: systemctl unmask %s", u.Name)
	case p.stale:
		return fmt.Errorf("its files are newer than what systemd has loaded, which the next boot would bring: systemctl daemon-reload")
	case u.Behind && !p.asserts(fence, true):
		return fmt.Errorf("it could start beside the server: it needs the line AssertPathExists=%s in its section [Unit], as deploy/systemd/k3s has it, and after that systemctl daemon-reload", fence)
	case u.Behind:
		return nil
	case u.K3s && !p.asserts(fence, false):
		return fmt.Errorf("it does not honour the fence: it needs the line AssertPathExists=!%s in its section [Unit], as deploy/systemd/k3s has it, and after that systemctl daemon-reload", fence)
	case !p.asserts(fence, false):
		return fmt.Errorf("it does not honour the fence: it needs the line AssertPathExists=!%s in its section [Unit], as deploy/systemd/suffrage-member.service has it, and after that systemctl daemon-reload", fence)
	}
	return nil
}

// with connects, and says of an error which unit it is about and what would help.
func (u Systemd) with(ctx context.Context, do string, f func(*connection) error) error {
	ctx, cancel := context.WithTimeout(ctx, unitTime)
	defer cancel()
	c, err := u.connect(ctx)
	if err == nil {
		err = f(c)
		c.Close()
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return fmt.Errorf("host: %s %s: %w%s", do, u.Name, err, help(err))
}

// connection is one to the system bus, for one unit.
type connection struct {
	*dbus.Conn
	name string
	raw  *godbus.Conn
}

// connect makes a connection that ends with the context at the latest.
func (u Systemd) connect(ctx context.Context) (*connection, error) {
	c := &connection{name: u.Name}
	bus := u.Bus
	if bus == "" {
		bus = systemBus
	}
	var err error
	c.Conn, err = dbus.NewConnection(func() (*godbus.Conn, error) {
		raw, err := godbus.Dial(bus, godbus.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		// Only EXTERNAL: the kernel says who asks.
		if err := raw.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
			raw.Close()
			return nil, err
		}
		if err := raw.Hello(); err != nil {
			raw.Close()
			return nil, err
		}
		c.raw = raw
		return raw, nil
	})
	if err != nil {
		return nil, fmt.Errorf("system bus: %w", err)
	}
	return c, nil
}

func (c *connection) object() godbus.BusObject {
	return c.raw.Object("org.freedesktop.systemd1", godbus.ObjectPath("/org/freedesktop/systemd1/unit/"+dbus.PathBusEscape(c.name)))
}

// job queues a job in place of any other of the unit and waits for its end, or
// until it has done enough, which counts as done.
func (c *connection) job(ctx context.Context, queue func(context.Context, string, string, chan<- string) (int, error), enough func() bool) (result string, err error) {
	ended := make(chan string, 1)
	if _, err := queue(ctx, c.name, "replace", ended); err != nil {
		return "", err
	}
	for {
		select {
		case result := <-ended:
			return result, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(250 * time.Millisecond):
			if enough != nil && enough() {
				return "done", nil
			}
		}
	}
}

// properties are what systemd has loaded of a unit, and its state.
type properties struct {
	loaded     string
	stale      bool
	active     string
	pid        uint32
	invocation string
	assertions []assertion
	starts     []execStart
}

// execStart is one of systemd's (org.freedesktop.systemd1(5): a(sasbttttuii)).
type execStart struct {
	Path                          string
	Args                          []string
	IgnoreFailure                 bool
	Began, BeganMono, Ended, EMon uint64
	PID                           uint32
	Code, Status                  int32
}

// etcdOnly reports whether the command line of K3s says so.
func (p properties) etcdOnly() bool {
	return slices.ContainsFunc(p.starts, func(e execStart) bool {
		s := Settings{}
		s.Add(e.Args)
		on, err := s.On(disableAPI)
		return err == nil && on
	})
}

// assertion is one of systemd's (org.freedesktop.systemd1(5): a(sbbsi)).
type assertion struct {
	Kind            string
	Trigger, Negate bool
	Param           string
	State           int32
}

// properties loads the unit where nothing has.
func (c *connection) properties(ctx context.Context) (p properties, err error) {
	all, err := c.GetUnitPropertiesContext(ctx, c.name)
	if err != nil {
		return p, err
	}
	id := []byte(nil)
	for name, to := range map[string]any{
		"LoadState": &p.loaded, "NeedDaemonReload": &p.stale, "ActiveState": &p.active, "InvocationID": &id, "Asserts": &p.assertions,
	} {
		if err := godbus.Store([]any{all[name]}, to); err != nil {
			return p, fmt.Errorf("property %s: %w", name, err)
		}
	}
	p.invocation = hex.EncodeToString(id)
	switch p.loaded {
	case "loaded", "masked":
	case "not-found":
		return p, errors.New("there is no such unit: install it (suffrage standby prepare, or K3s with both of its units), or correct the setting that names it")
	default:
		return p, fmt.Errorf("systemd could not load it (%s): systemctl status %s", p.loaded, c.name)
	}
	for name, to := range map[string]any{"MainPID": &p.pid, "ExecStart": &p.starts} {
		v, err := c.GetServicePropertyContext(ctx, c.name, name)
		if err == nil {
			err = godbus.Store([]any{v.Value.Value()}, to)
		}
		if err != nil {
			return p, fmt.Errorf("property %s: %w", name, err)
		}
	}
	return p, nil
}

// running is so while there is a process. A unit that waits to be started again
// has none.
func (p properties) running() bool {
	return p.pid != 0 || p.active == "active" || p.active == "reloading" || p.active == "deactivating"
}

// asserts reports whether nothing is started while the path exists, or, where it
// has to be there, while it does not. One of several triggering assertions is not
// enough: any of them lets a start pass.
func (p properties) asserts(path string, there bool) bool {
	for _, a := range p.assertions {
		if a.Kind == "AssertPathExists" && a.Negate != there && !a.Trigger && filepath.Clean(a.Param) == path {
			return true
		}
	}
	return false
}

// help says what would lift an error of the bus.
func help(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return ": there is no system bus: is this a host with systemd, and is dbus installed?"
	}
	d, ok := errors.AsType[godbus.Error](err)
	if !ok {
		return ""
	}
	switch d.Name {
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		return fmt.Sprintf(": user %d may not act on this unit: install polkitd, then: suffrage standby prepare (docs/install.md)", os.Geteuid())
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner":
		return ": systemd is not on this bus"
	}
	return ""
}
