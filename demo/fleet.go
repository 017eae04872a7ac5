package demo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// The ports are those of real hosts. All are below 32768, where the kernel
// begins to give ports to connections.
const (
	AgentPort             = 7400 // relayed
	AgentMetricsPort      = 7401
	ControllerMetricsPort = 7402
	PagePort              = 7403
	ClientPort            = 2379 // on the mesh address itself, not relayed
	PeerPort              = 2380 // relayed
	MemberMetricsPort     = 2381

	// lockPort is bound on 127.0.x.254 by the demo that owns the fleet number x.
	// The kernel gives it back however the demo ends.
	lockPort = 7399
)

const (
	hostCount   = 5
	voterCount  = 3 // where nobody says otherwise
	controllers = 2
)

// Host is one made-up machine.
type Host struct {
	Name string
	// Mesh is the address that the others know; the relay listens there for the
	// agent and the etcd peers. Real is where the processes listen.
	Mesh, Real netip.Addr
	// Dir holds the host's configuration, key, certificates, data and logs.
	Dir        string
	Voter      bool
	Controller bool
	// Zone is the failure domain it is said to be in.
	Zone string
}

// zones make the choice of a standby more than noise: h4 takes the place of h3,
// and h5 that of h1, without two voters in one zone.
var zones = [hostCount]string{"zone-a", "zone-b", "zone-c", "zone-c", "zone-a"}

// Path is a file in the host's directory.
func (h Host) Path(name string) string { return filepath.Join(h.Dir, name) }

// Role is voter or standby.
func (h Host) Role() string {
	if h.Voter {
		return "voter"
	}
	return "standby"
}

// Fleet is five hosts on loopback addresses that no other demo uses.
type Fleet struct {
	Number int // the x of 127.0.x.0/24
	Dir    string
	Hosts  []Host
	lock   net.Listener
}

// NewFleet takes a free fleet number, with its files to be under dir. Close
// gives the number back.
func NewFleet(dir string) (*Fleet, error) {
	var last error
	for x := 1; x < 255; x++ {
		lock, err := net.Listen("tcp", fmt.Sprintf("127.0.%d.254:%d", x, lockPort))
		if err != nil {
			last = err
			continue
		}
		f := &Fleet{Number: x, Dir: dir, Hosts: hosts(x, dir), lock: lock}
		if err := f.probe(); err != nil {
			lock.Close()
			last = err
			continue
		}
		return f, nil
	}
	return nil, fmt.Errorf("demo: no free loopback network among 127.0.1.0/24 to 127.0.254.0/24 (does something listen on 0.0.0.0?): %w", last)
}

// Close lets another demo have the number.
func (f *Fleet) Close() error { return f.lock.Close() }

func hosts(x int, dir string) []Host {
	out := make([]Host, hostCount)
	for i := range out {
		n := i + 1
		name := fmt.Sprintf("h%d", n)
		out[i] = Host{
			Name:       name,
			Mesh:       netip.AddrFrom4([4]byte{127, 0, byte(x), byte(n)}),
			Real:       netip.AddrFrom4([4]byte{127, 0, byte(x), byte(100 + n)}),
			Dir:        filepath.Join(dir, name),
			Voter:      n <= voterCount,
			Controller: n <= controllers,
			Zone:       zones[i],
		}
	}
	return out
}

// probe tries every address that will be listened on.
func (f *Fleet) probe() error {
	for _, h := range f.Hosts {
		// Every host may have a member one day.
		addrs := []netip.AddrPort{at(h.Mesh, AgentPort), at(h.Real, AgentPort), at(h.Real, AgentMetricsPort),
			at(h.Mesh, ClientPort), at(h.Mesh, PeerPort), at(h.Real, PeerPort), at(h.Real, MemberMetricsPort)}
		if h.Controller {
			addrs = append(addrs, at(h.Real, ControllerMetricsPort))
		}
		for _, a := range addrs {
			l, err := net.Listen("tcp", a.String())
			if err != nil {
				return err
			}
			if err := l.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

func at(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }

// Host finds a host by name.
func (f *Fleet) Host(name string) (Host, error) {
	var names []string
	for _, h := range f.Hosts {
		if h.Name == name {
			return h, nil
		}
		names = append(names, h.Name)
	}
	return Host{}, fmt.Errorf("demo: no host %q; there are %s", name, strings.Join(names, ", "))
}

// dataOf is the data directory of the host with this name.
func (f *Fleet) dataOf(name string) string { return filepath.Join(f.Dir, name, DataDir) }

// Voters are the hosts that have a vote from the start.
func (f *Fleet) Voters() []Host {
	var out []Host
	for _, h := range f.Hosts {
		if h.Voter {
			out = append(out, h)
		}
	}
	return out
}

// begin says how many hosts have a vote from the start.
func (f *Fleet) begin(voters int) {
	for i := range f.Hosts {
		f.Hosts[i].Voter = i < voters
	}
}

// names are those of hosts, in one phrase.
func names(hosts []Host) string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return strings.Join(out, " ")
}

// ClientURLs are the etcd client URLs of all hosts, since each may vote one day.
func (f *Fleet) ClientURLs() []string {
	var out []string
	for _, h := range f.Hosts {
		out = append(out, fmt.Sprintf("https://%s", at(h.Mesh, ClientPort)))
	}
	return out
}

// InitialCluster names the members that make the cluster, with their peer URLs.
func (f *Fleet) InitialCluster() map[string]string {
	out := map[string]string{}
	for _, h := range f.Voters() {
		out[h.Name] = fmt.Sprintf("https://%s", at(h.Mesh, PeerPort))
	}
	return out
}

// relays binds all mesh addresses. On an error none is left bound.
func (f *Fleet) relays(delays *Delays, listen func(mesh, real netip.AddrPort) (*Relay, error)) ([]*Relay, error) {
	var out []*Relay
	for _, h := range f.Hosts {
		delays.Set(h.Mesh, 0)
		for _, p := range []uint16{AgentPort, PeerPort} {
			r, err := listen(at(h.Mesh, p), at(h.Real, p))
			if err != nil {
				for _, r := range out {
					err = errors.Join(err, r.Close())
				}
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}
