package k3s

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
)

// network is where a fleet's hosts are: addresses 127.a.b.N, or 10.a.b.N with a
// network namespace for each host and a bridge between them.
type network struct {
	a, b byte
	own  bool // each host has a namespace
}

// newNetwork takes one that no other test process has.
func newNetwork(t testing.TB, own bool) network {
	t.Helper()
	var err error
	for range 100 {
		n := network{byte(64 + rand.IntN(64)), byte(rand.IntN(256)), own}
		var lock net.Listener
		if lock, err = n.lock(); err != nil {
			continue
		}
		t.Cleanup(func() { lock.Close() })
		if own {
			n.bridge(t)
		}
		return n
	}
	t.Fatalf("no free network: %v", err)
	return network{}
}

func (n network) lock() (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.%d.%d.254:7398", n.a, n.b))
}

func (n network) address(host int) netip.Addr {
	first := byte(127)
	if n.own {
		first = 10
	}
	return netip.AddrFrom4([4]byte{first, n.a, n.b, byte(host)})
}

// name is the bridge's, and the beginning of the namespaces'.
func (n network) name() string { return fmt.Sprintf("k3s-%d-%d", n.a, n.b) }

func (n network) bridge(t testing.TB) {
	t.Helper()
	leftovers()
	t.Cleanup(func() {
		if err := ip("link", "del", n.name()); err != nil {
			t.Error(err)
		}
	})
	err := errors.Join(
		ip("link", "add", n.name(), "type", "bridge"),
		ip("address", "add", n.address(254).String()+"/24", "dev", n.name()),
		ip("link", "set", n.name(), "up"))
	if err != nil {
		t.Fatal(err)
	}
}

// add makes a host's namespace and gives what a command starts with there.
func (n network) add(t testing.TB, host int) []string {
	t.Helper()
	if !n.own {
		return nil
	}
	space := fmt.Sprintf("%s-%d", n.name(), host)
	outside := fmt.Sprintf("k3%d.%d.%d", n.a, n.b, host) // 15 letters are allowed
	t.Cleanup(func() {
		if err := ip("netns", "del", space); err != nil {
			t.Error(err)
		}
	})
	err := errors.Join(
		ip("netns", "add", space),
		ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", space),
		ip("link", "set", outside, "master", n.name(), "up"),
		ip("-n", space, "address", "add", n.address(host).String()+"/24", "dev", "eth0"),
		ip("-n", space, "link", "set", "eth0", "up"),
		ip("-n", space, "link", "set", "lo", "up"),
		ip("-n", space, "route", "add", "default", "via", n.address(254).String())) // K3s wants one
	if err != nil {
		t.Fatal(err)
	}
	return []string{"ip", "netns", "exec", space}
}

// leftovers takes away what killed runs left: those whose network nobody has.
func leftovers() {
	spaces, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(spaces)) {
		var n network
		var host int
		space := strings.Fields(line)[0]
		if _, err := fmt.Sscanf(space, "k3s-%d-%d-%d", &n.a, &n.b, &host); err != nil {
			continue
		}
		lock, err := n.lock()
		if err != nil {
			continue
		}
		_ = ip("netns", "del", space)
		_ = ip("link", "del", n.name()) // more than once
		lock.Close()
	}
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
