package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

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
	program string
	verbs   []string // what is enabled: agent, member, controller
	unit    *demo.Unit
	socket  net.Listener

	on       context.Context // of its services
	stop     context.CancelFunc
	services sync.WaitGroup
}

func newNode(h *Host, d demo.Host, program string) (*Node, error) {
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
	return n.Start(ctx, verb, n.program, verb, "--config", n.config)
}

// Suffrage runs a command on the host, as its owner does.
func (n *Node) Suffrage(ctx context.Context, args ...string) (string, error) {
	return n.Run(ctx, append(append([]string{n.program}, args...), "--config", n.config)...)
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

// enable has a service start now and at every boot.
func (n *Node) enable(verb string) error {
	n.verbs = append(n.verbs, verb)
	return n.begin(verb)
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
