package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"suffrage/demo"
	"suffrage/membership/host"
)

// again is how long after its end a service is started again.
const again = time.Second

// Node is a host of a Fleet: its services are an agent, its etcd, and on some a
// controller, each started again when it ends by itself, and all of them when
// the host boots.
type Node struct {
	*Host
	config  string // its settings file
	data    string
	program []string // what its commands begin with
	verbs   []string // what is enabled: agent, member, controller
	aside   bool     // its datastore was laid aside by hand
	unit    *demo.Unit
	socket  net.Listener

	on       context.Context // of its services
	stop     context.CancelFunc
	services sync.WaitGroup
}

func newNode(h *Host, d demo.Host, program []string) (*Node, error) {
	n := &Node{Host: h, config: d.Path(demo.ConfigFile), data: d.Path(demo.DataDir), program: program}
	n.unit = demo.NewUnit(h.supervisor, n.data, func(ctx context.Context) (*demo.Child, error) { return n.launch(ctx, "member") })
	n.unit.Restart = again
	var err error
	if n.socket, err = net.Listen("unix", filepath.Join(h.Dir, demo.UnitSocket)); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", h.Name, err)
	}
	return n, nil
}

func (n *Node) launch(ctx context.Context, verb string) (*demo.Child, error) {
	return n.Start(ctx, verb, n.command(verb)...)
}

// Suffrage runs a command on the host, as its owner does.
func (n *Node) Suffrage(ctx context.Context, args ...string) (string, error) {
	return n.Run(ctx, n.command(args...)...)
}

func (n *Node) command(args ...string) []string {
	return append(slices.Concat(n.program, args), "--config", n.config)
}

// Boot gives power, and starts what is enabled.
func (n *Node) Boot() error {
	n.on, n.stop = context.WithCancel(context.Background())
	var errs []error
	for _, verb := range n.verbs {
		errs = append(errs, n.begin(verb))
	}
	return errors.Join(errs...)
}

// Enable has a service start now and at every boot: agent, member or controller.
func (n *Node) Enable(verb string) error {
	n.verbs = append(n.verbs, verb)
	return n.begin(verb)
}

// DisableMember ends its etcd, which no boot starts again, as
// `systemctl disable --now` does.
func (n *Node) DisableMember(ctx context.Context) error {
	n.verbs = slices.DeleteFunc(n.verbs, func(v string) bool { return v == "member" })
	return n.unit.Stop(ctx)
}

// Crash kills a service's process, which is started again after a second.
func (n *Node) Crash(verb string) error {
	b, err := os.ReadFile(filepath.Join(n.group, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("lab: %s: %w", n.Name, err)
	}
	for _, pid := range strings.Fields(string(b)) {
		line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline")) // it may have ended
		if !strings.Contains(string(line), "\x00"+verb+"\x00") {
			continue
		}
		id, err := strconv.Atoi(pid)
		if err == nil {
			err = unix.Kill(id, unix.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("lab: %s: kill its %s: %w", n.Name, verb, err)
		}
		return nil
	}
	return fmt.Errorf("lab: %s: no %s runs", n.Name, verb)
}

// Aside is `mv etcd etcd.before`, of its datastore.
func (n *Node) Aside() error {
	if err := os.Rename(filepath.Join(n.data, "etcd"), filepath.Join(n.data, "etcd.before")); err != nil {
		return fmt.Errorf("lab: %s: %w", n.Name, err)
	}
	n.aside = true
	return nil
}

// Logged reports whether a service has ever said this.
func (n *Node) Logged(verb, text string) bool {
	b, err := os.ReadFile(filepath.Join(n.Dir, verb+".log"))
	return err == nil && strings.Contains(string(b), text)
}

// begin starts a service; that etcd is fenced is no error.
func (n *Node) begin(verb string) error {
	if verb != "member" {
		on := n.on
		n.services.Go(func() { n.keep(on, verb) })
	} else if err := n.unit.Start(n.on); err != nil && !errors.Is(err, host.ErrFenced) {
		return err
	}
	return nil
}

// keep has a service run until ctx ends.
func (n *Node) keep(ctx context.Context, verb string) {
	for {
		c, err := n.launch(ctx, verb)
		if err != nil {
			return // the supervisor ends
		}
		select {
		case <-c.Ended():
		case <-ctx.Done():
			n.supervisor.Stop(c)
			return
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return
		}
	}
}

// Member tells of the host's etcd.
func (n *Node) Member(ctx context.Context) (host.UnitState, error) { return n.unit.State(ctx) }

// Fenced reports whether nothing may start its etcd.
func (n *Node) Fenced() bool { return errors.Is(host.Fenced(n.data), host.ErrFenced) }

// AtRest reports whether nothing can start its etcd: it is fenced, or its owner
// laid the datastore aside, without which it starts nothing.
func (n *Node) AtRest() bool {
	_, err := os.Lstat(filepath.Join(n.data, "etcd"))
	return n.Fenced() || n.aside && errors.Is(err, fs.ErrNotExist)
}

// PowerOff takes the power away, also of a frozen host.
func (n *Node) PowerOff(ctx context.Context) error {
	err := n.Kill()
	if n.stop != nil {
		n.stop()
	}
	n.services.Wait()
	// What was just being started came after the first.
	return errors.Join(err, n.unit.Stop(ctx), n.Kill(), n.Thaw())
}

// Reboot is a loss of power that ends.
func (n *Node) Reboot(ctx context.Context) error {
	return errors.Join(n.PowerOff(ctx), n.Boot())
}

// fence is what docs/install.md has its reader write on a standby.
func (n *Node) fence() error {
	if err := os.WriteFile(filepath.Join(n.data, "fence.json"), []byte("{}\n"), 0o644); err != nil {
		return fmt.Errorf("lab: %s: %w", n.Name, err)
	}
	return nil
}
