package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Network carries packets between hosts that are numbered from 1. The tests'
// own process is on it too, with links that nothing happens to.
type Network struct {
	hosts  int
	spaces []*os.File // of the hosts, from 1 on at index 0
	cmd    *exec.Cmd

	mu    sync.Mutex
	in    io.WriteCloser
	acks  *bufio.Reader
	links map[[2]int]Link
}

// NewNetwork makes the networks of so many hosts and starts the router. One at a
// time can be open in a World, since the tests' process has one device.
func NewNetwork(hosts int) (*Network, error) {
	n := &Network{hosts: hosts, links: map[[2]int]Link{}}
	tuns, numbers, err := n.devices()
	defer func() {
		for _, t := range tuns {
			t.Close() // the router has them
		}
	}()
	if err == nil {
		err = n.start(tuns, numbers)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Network) devices() (tuns []*os.File, numbers []string, err error) {
	for i := 1; i <= n.hosts; i++ {
		ns, tun, err := namespace(i)
		if err != nil {
			return tuns, nil, err
		}
		n.spaces = append(n.spaces, ns)
		tuns, numbers = append(tuns, tun), append(numbers, strconv.Itoa(i))
	}
	own, err := openTUN(Observer)
	if err != nil {
		return tuns, nil, err
	}
	return append(tuns, own), append(numbers, strconv.Itoa(Observer)), nil
}

func (n *Network) start(tuns []*os.File, numbers []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+routerRole, routerHosts+"="+strings.Join(numbers, ","))
	cmd.ExtraFiles, cmd.Stderr = tuns, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("lab: router: %w", err)
	}
	if n.in, err = cmd.StdinPipe(); err != nil {
		return fmt.Errorf("lab: router: %w", err)
	}
	n.acks = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("lab: router: %w", err)
	}
	n.cmd = cmd
	return nil
}

// Set changes the link from one host to another, by number, and returns when
// that is in force.
func (n *Network) Set(from, to int, l Link) error {
	if err := l.validate(); err != nil {
		return err
	}
	for _, host := range []int{from, to} {
		if host != Observer && (host < 1 || host > n.hosts) {
			return fmt.Errorf("lab: no host %d: there are %d", host, n.hosts)
		}
	}
	line, err := json.Marshal(setLink{from, to, l})
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("lab: tell the router: %w", err)
	}
	if _, err := n.acks.ReadString('\n'); err != nil {
		return fmt.Errorf("lab: the router did not answer: %w", err)
	}
	n.links[[2]int{from, to}] = l
	return nil
}

// Get is the link from one host to another.
func (n *Network) Get(from, to int) Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.links[[2]int{from, to}]
}

// Clear takes away everything that was set.
func (n *Network) Clear() error {
	n.mu.Lock()
	var set [][2]int
	for pair, l := range n.links {
		if !reflect.DeepEqual(l, Link{}) {
			set = append(set, pair)
		}
	}
	n.mu.Unlock()
	var errs []error
	for _, pair := range set {
		errs = append(errs, n.Set(pair[0], pair[1], Link{}))
	}
	return errors.Join(errs...)
}

// In runs f on a thread that is in the network of a host. What f opens stays
// there; what it starts in other goroutines is not there.
func (n *Network) In(host int, f func() error) error { return inside(n.spaces[host-1], f) }

// Close ends the router, and the networks with the last process in them.
func (n *Network) Close() error {
	var err error
	if n.cmd != nil {
		n.in.Close() // it ends with its input
		if err = n.cmd.Wait(); err != nil {
			err = fmt.Errorf("lab: router: %w", err)
		}
		n.cmd = nil
	}
	for _, s := range n.spaces {
		s.Close()
	}
	n.spaces = nil
	return err
}
