package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/lease"
	leaseetcd "suffrage/lease/etcd"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// Plan says what a fleet is made of.
type Plan struct {
	// Program is the suffrage binary, Dir an empty directory.
	Program, Dir string
	// Hosts h1, h2 and so on; the first Voters of them vote. Every host is eligible.
	Hosts, Voters int
	// Controllers are the hosts that have one.
	Controllers []string
	// Disks are the hosts whose data is on a Disk, Spaces those with it on a Space.
	Disks, Spaces []string
	// Period is the time between two samples, 0 for 25 ms.
	Period time.Duration
	// StallTime is controller.stall_time of the settings, 0 for 15 s; Soak is
	// controller.soak, 0 for 3 s.
	StallTime, Soak fitness.Duration
	// Clocks are by how much those of hosts are off. They need ClockProgram, which
	// mesh-tests/clock.sh builds.
	Clocks       map[string]time.Duration
	ClockProgram string
}

// program is what a host's commands begin with.
func (p Plan) program(host string) []string {
	if off := p.Clocks[host]; off != 0 {
		return []string{"env", fmt.Sprintf("SUFFRAGE_LAB_CLOCK=%d", int(off.Seconds())), p.ClockProgram}
	}
	return []string{p.Program}
}

// Fleet is hosts with Suffrage on them.
type Fleet struct {
	Network *Network
	Nodes   []*Node
	// Client is one of etcd's, in the tests' process.
	Client *clientv3.Client

	etcd    etcd.Config // of Client
	voters  []string
	disks   map[string]*Disk
	spaces  map[string]*Space
	end     context.CancelFunc
	running errgroup.Group
}

// startLimit is far beyond what a fleet takes.
const startLimit = 3 * time.Minute

// NewFleet starts a fleet: its cluster is made and its hosts are marked by the
// time it returns. Close ends it.
func NewFleet(ctx context.Context, p Plan) (_ *Fleet, err error) {
	f := &Fleet{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	d := &demo.Fleet{Dir: p.Dir}
	for i := 1; i <= p.Hosts; i++ {
		name := fmt.Sprintf("h%d", i)
		d.Hosts = append(d.Hosts, demo.Host{Name: name, Mesh: Address(i), Real: Address(i), Dir: filepath.Join(p.Dir, name),
			Voter: i <= p.Voters, Controller: slices.Contains(p.Controllers, name), Zone: "zone-" + name})
		if i <= p.Voters {
			f.voters = append(f.voters, name)
		}
	}
	if err := d.Write(p.settings); err != nil {
		return f, err
	}
	if err := f.mount(d, p); err != nil {
		return f, err
	}
	if f.Network, err = NewNetwork(p.Hosts); err != nil {
		return f, err
	}
	if err := f.makeNodes(d, p); err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return f, f.start(ctx, d)
}

// Backing is the folder of a host from which its Disk passes everything through:
// what is on it is still there once the Disk is gone.
const Backing = "disk"

// mount puts the data of hosts on disks of their own.
func (f *Fleet) mount(d *demo.Fleet, p Plan) error {
	f.disks, f.spaces = map[string]*Disk{}, map[string]*Space{}
	for _, name := range p.Spaces {
		h, err := d.Host(name)
		if err != nil {
			return err
		}
		if f.spaces[name], err = MountSpace(h.Path(demo.DataDir)); err != nil {
			return err
		}
	}
	for _, name := range p.Disks {
		h, err := d.Host(name)
		if err != nil {
			return err
		}
		backing := h.Path(Backing)
		if err := os.Mkdir(backing, 0o700); err != nil {
			return fmt.Errorf("lab: %s: %w", name, err)
		}
		if f.disks[name], err = MountDisk(backing, h.Path(demo.DataDir)); err != nil {
			return err
		}
	}
	return nil
}

// Disk is that of a host of Plan.Disks.
func (f *Fleet) Disk(host string) *Disk {
	d := f.disks[host]
	if d == nil {
		panic("lab: " + host + " has no disk of its own")
	}
	return d
}

// Space is that of a host of Plan.Spaces.
func (f *Fleet) Space(host string) *Space {
	s := f.spaces[host]
	if s == nil {
		panic("lab: " + host + " has no space of its own")
	}
	return s
}

func (f *Fleet) makeNodes(d *demo.Fleet, p Plan) error {
	s := demo.NewSupervisor()
	ctx, end := context.WithCancel(context.Background())
	f.end = end
	f.running.Go(func() error { return s.Run(ctx) })
	for i, dh := range d.Hosts {
		h, err := NewHost(f.Network, s, i+1, dh.Dir)
		if err != nil {
			return err
		}
		n, err := newNode(h, dh, p.program(h.Name))
		if err != nil {
			return errors.Join(err, h.Close())
		}
		f.Nodes = append(f.Nodes, n)
		f.running.Go(func() error { return n.unit.Run(ctx, n.socket) })
	}
	return nil
}

// start follows docs/install.md: agents, the cluster, members, marks, controllers.
func (f *Fleet) start(ctx context.Context, d *demo.Fleet) (err error) {
	for _, n := range f.Nodes {
		if err := errors.Join(n.Boot(), n.Enable("agent")); err != nil {
			return err
		}
	}
	confirm := "create " + strings.Join(f.voters, ",")
	for _, v := range f.voters {
		err := retry(ctx, "create the cluster on "+v, func() error {
			_, err := f.Node(v).Suffrage(ctx, "cluster", "create", "--confirm", confirm)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, n := range f.Nodes {
		if !slices.Contains(f.voters, n.Name) {
			if err := n.fence(); err != nil {
				return err
			}
		}
		if err := n.Enable("member"); err != nil {
			return err
		}
	}
	h := d.Hosts[0]
	f.etcd = etcd.DefaultConfig()
	f.etcd.Endpoints, f.etcd.CA, f.etcd.Cert, f.etcd.Key = d.ClientURLs(), h.Path(demo.CAFile), h.Path(demo.CertFile), h.Path(demo.KeyFile)
	if f.Client, err = f.etcd.Client(); err != nil {
		return err
	}
	if err := retry(ctx, "mark the hosts", func() error { return f.mark(ctx) }); err != nil {
		return err
	}
	for i, h := range d.Hosts {
		if h.Controller {
			if err := f.Nodes[i].Enable("controller"); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark makes every host eligible, and the Lease, which is free then.
func (f *Fleet) mark(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, n := range f.Nodes {
		_, err := etcd.UpdateMark(ctx, f.Client, n.Name, func(m membership.Mark) (membership.Mark, error) {
			m.Eligible = &membership.Say{Value: true, By: "the lab", At: time.Now().UTC()}
			return m, nil
		})
		if err != nil {
			return err
		}
	}
	err := lease.Create(ctx, leaseetcd.New(f.Client), fitness.Duration(15*time.Second))
	if errors.Is(err, lease.ErrConflict) {
		return nil
	}
	return err
}

// retry does something until it succeeds or ctx ends.
func retry(ctx context.Context, what string, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lab: %s: %w: %w", what, ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Node is the host with this name; that there is none is a mistake of the caller's.
func (f *Fleet) Node(name string) *Node {
	i := slices.IndexFunc(f.Nodes, func(n *Node) bool { return n.Name == name })
	if i < 0 {
		panic("lab: no host " + name)
	}
	return f.Nodes[i]
}

// Close ends everything and takes away what is not a file.
func (f *Fleet) Close() error {
	var errs []error
	if f.Client != nil {
		errs = append(errs, f.Client.Close())
	}
	var off errgroup.Group
	for _, n := range f.Nodes {
		off.Go(func() error { return n.PowerOff(context.Background()) })
	}
	errs = append(errs, off.Wait())
	if f.end != nil {
		f.end()
		errs = append(errs, f.running.Wait())
	}
	for _, n := range f.Nodes {
		errs = append(errs, n.Close())
	}
	for _, d := range f.disks {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	for _, s := range f.spaces {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if f.Network != nil {
		errs = append(errs, f.Network.Close())
	}
	return errors.Join(errs...)
}
