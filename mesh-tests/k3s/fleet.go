package k3s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/mesh-tests/kubetest"
)

// Variable names a k3s to use instead of the double.
const Variable = "K3S_BIN"

// Patience is how long tests wait for what must happen: a busy machine must not
// fail one.
const Patience = 3 * time.Minute

// RealPatience is it with a real k3s, whose times cannot be shortened: the longest
// are the five minutes of a learner and of a condition.
const RealPatience = 15 * time.Minute

// Token is the fleets'.
const Token = "a-secret-of-the-test"

// Options are how a fleet differs from three servers with K3s's own times.
type Options struct {
	Servers int // that are started, h1, h2 and so on; 0 is 3
	// Split gives each of them the etcd role only, and one more host, c1, the
	// control plane without etcd. So there is one API server, which takes less of
	// the machine, and no swap stops it.
	Split bool
	// Namespaces gives each host a network of its own, so that what K3s has on
	// 127.0.0.1 is there. It needs root. With K3S_BIN it is always so.
	Namespaces bool
	// Config is added to every host's config.yaml.
	Config string
	// Env is for every host: the double's times, such as K3S_DOUBLE_MANAGE=1s.
	Env []string
}

// Fleet is some hosts. It ends with the test.
type Fleet struct {
	Hosts []*Host
	// Double: it is not K3s.
	Double bool

	t       testing.TB
	o       Options
	dir     string
	net     network
	program string
}

// Quick are times for the double that tests can wait for.
var Quick = []string{"K3S_DOUBLE_MANAGE=500ms", "K3S_DOUBLE_LEASE=5s"}

// QuickETCD is an etcd with a fifth of K3s's election timeout.
const QuickETCD = "etcd-arg: [heartbeat-interval=100, election-timeout=1000]\n"

// New starts a fleet and waits until all its servers vote and an API server is
// ready.
func New(t testing.TB, o Options) *Fleet {
	t.Helper()
	f := Empty(t, o)
	if f.o.Servers == 0 {
		f.o.Servers = 3
	}
	for n := range f.o.Servers {
		h := f.Add(fmt.Sprintf("h%d", n+1))
		f.Start(h)
		f.WaitVoting(h)
	}
	if o.Split {
		c := f.Add("c1")
		f.Configure(c, "disable-etcd: true\nserver: "+f.Hosts[0].ServerURL()+"\n")
		f.Start(c)
	}
	f.WaitAPI()
	if len(f.Hosts) > 1 {
		// cluster-init stays in no configuration once there is a cluster.
		f.Configure(f.Hosts[0], "server: "+f.Hosts[1].ServerURL()+"\n"+f.role())
	}
	return f
}

// Empty has no host yet.
func Empty(t testing.TB, o Options) *Fleet {
	t.Helper()
	if os.Getenv(kubetest.Variable) == "" && os.Getenv(Variable) == "" {
		t.Skipf("SKIPPED: %s names no Kubernetes API server: 'make k3s-test' builds one and runs this test", kubetest.Variable)
	}
	program := os.Getenv(Variable)
	if program != "" {
		o.Namespaces = true // K3s listens on 127.0.0.1
	} else {
		var err error
		if program, err = Build(); err != nil {
			t.Fatal(err)
		}
	}
	return &Fleet{Double: os.Getenv(Variable) == "", t: t, o: o, dir: t.TempDir(), net: newNetwork(t, o.Namespaces), program: program}
}

func (f *Fleet) role() string {
	if f.o.Split {
		return "disable-apiserver: true\ndisable-controller-manager: true\ndisable-scheduler: true\n"
	}
	return ""
}

// Add makes a host, with a configuration by which it joins the first one, or is
// the first.
func (f *Fleet) Add(name string) *Host {
	f.t.Helper()
	number := len(f.Hosts) + 1
	h := &Host{Name: name, Address: f.net.address(number), Dir: filepath.Join(f.dir, name), Command: "server"}
	h.Enter = f.net.add(f.t, number)
	h.program = append(slices.Clone(h.Enter), f.program)
	h.Env = append(slices.Clone(f.o.Env), "K3S_DOUBLE_NODE="+filepath.Dir(h.NodePassword()))
	if !f.net.own {
		h.Env = append(h.Env, "K3S_DOUBLE_LOOPBACK="+h.Address.String())
	}
	if err := os.MkdirAll(filepath.Dir(h.Config()), 0o755); err != nil {
		f.t.Fatal(err)
	}
	first := "cluster-init: true\n"
	if len(f.Hosts) > 0 {
		first = "server: " + f.Hosts[0].ServerURL() + "\n"
	}
	f.Hosts = append(f.Hosts, h)
	f.Configure(h, first+f.role())
	f.t.Cleanup(func() {
		if err := h.Kill(); err != nil {
			f.t.Error(err)
		}
		if f.t.Failed() {
			f.t.Logf("end of the log of %s:\n%s", name, tail(h.Log()))
		}
	})
	return h
}

// Configure writes config.yaml: who the host is, and what is said of its role.
func (f *Fleet) Configure(h *Host, role string) {
	f.t.Helper()
	text := fmt.Sprintf("node-name: %s\nnode-ip: %s\ndata-dir: %s\ntoken: %s\nwrite-kubeconfig: %s\n", h.Name, h.Address, h.DataDir(), Token, h.written())
	if err := os.WriteFile(h.Config(), []byte(text+role+f.o.Config), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// Host is the one with a name.
func (f *Fleet) Host(name string) *Host {
	f.t.Helper()
	for _, h := range f.Hosts {
		if h.Name == name {
			return h
		}
	}
	f.t.Fatalf("there is no host %s", name)
	return nil
}

// Start starts one and does not wait.
func (f *Fleet) Start(h *Host) {
	f.t.Helper()
	if err := h.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// Stop ends one and waits.
func (f *Fleet) Stop(h *Host) {
	f.t.Helper()
	if err := h.Stop(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// Wait waits until is gives nil.
func (f *Fleet) Wait(what string, is func(context.Context) error) {
	f.t.Helper()
	patience := Patience
	if !f.Double {
		patience = RealPatience
	}
	for until := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
		err := is(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			f.t.Fatalf("not yet: %s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// WaitExit waits until a host's process has ended by itself.
func (f *Fleet) WaitExit(h *Host) {
	f.t.Helper()
	f.Wait(h.Name+" ends", func(context.Context) error {
		if h.Running() {
			return errors.New("it runs")
		}
		return nil
	})
}

// WaitLog waits until a host's log has a text.
func (f *Fleet) WaitLog(h *Host, text string) {
	f.t.Helper()
	f.Wait(h.Name+" logs "+text, func(context.Context) error {
		content, err := os.ReadFile(h.Log())
		if err == nil && !strings.Contains(string(content), text) {
			err = errors.New("it does not")
		}
		return err
	})
}

func tail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-6000):])
}
