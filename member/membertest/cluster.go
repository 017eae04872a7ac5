// Package membertest runs real etcd members for tests: each is the test binary
// once more, in a process of its own, that runs package member and nothing
// else. So a test can freeze one, kill one, and leaves no goroutine of etcd in
// its own process.
//
// A test package that uses it calls Main first in its TestMain.
package membertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/identity"
	"suffrage/member"
)

// Patience is how long tests wait for what must happen. It is generous: a busy
// machine must not fail a test.
const Patience = time.Minute

const variable = "SUFFRAGE_MEMBERTEST"

type order struct {
	Config member.Config
	Join   bool
}

// Main runs a member and exits, when this process was started to be one.
func Main() {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := member.Start{Join: o.Join, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Registerer: prometheus.DefaultRegisterer}.Run(ctx, o.Config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Options are how a cluster differs from three members without TLS, at etcd's
// default timing.
type Options struct {
	Size  int // members; 0 is 3
	TLS   bool
	Quota int64
	// Server is the file of an etcd server to run instead of package member;
	// such a one tells no election timeout.
	Server string
	// Set changes one member's configuration before it starts.
	Set func(*member.Config)
}

// Cluster is some members on loopback addresses of their own.
type Cluster struct {
	Members []*Member
	// CA, Cert and Key are files for a client; empty without TLS.
	CA, Cert, Key string

	t    testing.TB
	net  [2]byte // the addresses are 127.a.b.h
	o    Options
	tls  *authority
	urls map[string]string
}

// Member is one process.
type Member struct {
	Name    string
	Address netip.Addr
	Config  member.Config

	t      testing.TB
	server string // Options.Server
	cmd    *exec.Cmd
	log    bytes.Buffer
	done   chan struct{}
	err    error
}

// New makes a cluster and waits until every member serves. It ends with the test.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Size == 0 {
		o.Size = 3
	}
	c := &Cluster{t: t, o: o, urls: map[string]string{}}
	c.net = takeNetwork(t)
	if o.TLS {
		c.tls = newAuthority(t, c, o.Size+1)
		c.CA, c.Cert, c.Key = c.tls.client()
	}
	for i := range o.Size {
		m := c.newMember(i + 1)
		c.urls[m.Name] = m.Config.AdvertisePeer
		c.Members = append(c.Members, m)
	}
	for _, m := range c.Members {
		m.Config.InitialCluster = c.urls
		m.Start(true, false)
	}
	for _, m := range c.Members {
		m.WaitServing()
	}
	return c
}

func (c *Cluster) address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, c.net[0], c.net[1], byte(n)})
}

func (c *Cluster) newMember(n int) *Member {
	cfg := member.DefaultConfig()
	a := c.address(n)
	scheme := "http"
	if c.tls != nil {
		scheme = "https"
		cfg.CA, cfg.Cert, cfg.Key = c.tls.files(n)
	}
	cfg.Name = fmt.Sprintf("h%d", n)
	cfg.DataDir = filepath.Join(c.t.TempDir(), cfg.Name)
	cfg.ListenPeer = fmt.Sprintf("%s://%s:2380", scheme, a)
	cfg.ListenClient = fmt.Sprintf("%s://%s:2379", scheme, a)
	cfg.AdvertisePeer, cfg.AdvertiseClient = cfg.ListenPeer, cfg.ListenClient
	cfg.Metrics = fmt.Sprintf("http://%s:2381", a)
	if c.o.Quota != 0 {
		cfg.Quota = c.o.Quota
	}
	if c.o.Set != nil {
		c.o.Set(&cfg)
	}
	return &Member{Name: cfg.Name, Address: a, Config: cfg, t: c.t, server: c.o.Server}
}

// Another is one more member, not started: the cluster must list it first.
func (c *Cluster) Another() *Member {
	m := c.newMember(len(c.Members) + 1)
	m.Config.InitialCluster = map[string]string{m.Name: m.Config.AdvertisePeer}
	for name, u := range c.urls {
		m.Config.InitialCluster[name] = u
	}
	return m
}

// Endpoints are the client URLs.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, m := range c.Members {
		out = append(out, m.Config.AdvertiseClient)
	}
	return out
}

// HostOf names the member at an address.
func (c *Cluster) HostOf(address string) string {
	for _, m := range c.Members {
		if m.Address.String() == address {
			return m.Name
		}
	}
	return ""
}

// Start starts the process; with create as one of the first of a new cluster.
func (m *Member) Start(create, join bool) {
	m.t.Helper()
	o := order{m.Config, join}
	if create && m.server == "" {
		if err := member.Create(m.Config.DataDir, m.Name, m.Config.InitialCluster, "suffrage"); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.server != "" {
		m.cmd = server(m.server, o)
	} else {
		m.cmd = m.itself(o)
	}
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.done = make(chan struct{})
	go func() {
		m.err = m.cmd.Wait()
		close(m.done)
	}()
	m.t.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		<-m.done
		if m.t.Failed() && m.log.Len() > 0 {
			m.t.Logf("log of %s:\n%s", m.Name, ends(m.log.String()))
		}
	})
}

// ends are the beginning and the end of a log: one that repeats itself at the end
// hides what it began with.
func ends(log string) string {
	const each = 4000
	if len(log) > 2*each {
		return log[:each] + "\n…\n" + log[len(log)-each:]
	}
	return log
}

// itself is this process once more: Main runs the member.
func (m *Member) itself(o order) *exec.Cmd {
	m.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		m.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return cmd
}

// Signal sends a signal, such as SIGSTOP.
func (m *Member) Signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// Wait waits for the process to end and gives what it wrote.
func (m *Member) Wait() (string, error) {
	m.t.Helper()
	select {
	case <-m.done:
		return m.log.String(), m.err
	case <-time.After(Patience):
		m.t.Fatalf("%s does not end", m.Name)
		return "", nil
	}
}

// WaitServing waits until the client port accepts: etcd opens it once the
// member has joined.
func (m *Member) WaitServing() {
	m.t.Helper()
	until := time.Now().Add(Patience)
	for {
		// The listener stands early; its health page answers only when served.
		if m.healthy() {
			return
		}
		select {
		case <-m.done:
			m.t.Fatalf("%s ended: %v\n%s", m.Name, m.err, m.log.String())
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(until) {
			m.t.Fatalf("%s does not serve", m.Name)
		}
	}
}

// takeNetwork finds a 127.a.b.0/24 that no other test process uses.
func takeNetwork(t testing.TB) [2]byte {
	t.Helper()
	var err error
	for range 100 {
		a, b := byte(64+rand.IntN(64)), byte(rand.IntN(256))
		var lock net.Listener
		if lock, err = net.Listen("tcp", fmt.Sprintf("127.%d.%d.254:7398", a, b)); err == nil {
			t.Cleanup(func() { lock.Close() })
			return [2]byte{a, b}
		}
	}
	t.Fatalf("no free loopback network: %v", err)
	return [2]byte{}
}

// authority makes the certificates of a cluster.
type authority struct {
	t   testing.TB
	dir string
}

func newAuthority(t testing.TB, c *Cluster, hosts int) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	ca, err := identity.NewAuthority(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= hosts; n++ {
		key, err := identity.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("h%d", n)
		roster, err := identity.NewRoster([]identity.RosterHost{{Name: name, Address: c.address(n), Fingerprint: key.Fingerprint()}})
		if err != nil {
			t.Fatal(err)
		}
		csr, err := identity.Request(key, name, c.address(n))
		if err != nil {
			t.Fatal(err)
		}
		cert, err := ca.Sign(csr, roster, 0)
		_, certFile, keyFile := a.files(n)
		if err := errors.Join(err, key.Save(keyFile), os.WriteFile(certFile, cert, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (a *authority) files(n int) (ca, cert, key string) {
	at := func(s string) string { return filepath.Join(a.dir, s) }
	return at("ca.crt"), at(fmt.Sprintf("h%d.crt", n)), at(fmt.Sprintf("h%d.key", n))
}

// client uses the first host's certificate: a host is client and server.
func (a *authority) client() (ca, cert, key string) { return a.files(1) }
