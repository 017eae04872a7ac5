// Package kubetest runs a real Kubernetes API server for tests, over one real
// etcd member: for adapters that talk to Kubernetes, of which a fake would prove
// little. There is no kubelet, scheduler or controller manager beside it: Nodes
// are objects that a test makes.
//
// The server is the program that SUFFRAGE_KUBE_APISERVER names; without it tests
// that call New are skipped. `make kube-test` builds the program, which takes a
// quarter of an hour once, and sets the variable. All of it is on loopback
// addresses of the test's own and ends with the test. A test package that uses
// it calls membertest.Main first in its TestMain.
package kubetest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"suffrage/member/membertest"
)

// Variable names the program.
const Variable = "SUFFRAGE_KUBE_APISERVER"

// Admin is the user who may do everything; each other user of New may nothing
// until a test grants it.
const Admin = "admin"

// Patience is how long tests wait for what must happen: a server on a busy
// machine takes a minute to be ready.
const Patience = 3 * time.Minute

// Below is an etcd that is there already. Endpoints are client URLs; the files
// are of a client's certificate.
type Below struct {
	Endpoints     []string
	CA, Cert, Key string
}

// Server is one API server and the etcd below it.
type Server struct {
	Etcd *membertest.Cluster // one member; nil Over another etcd

	t       testing.TB
	below   Below
	program string
	address netip.AddrPort
	dir     string // keys, tokens
	ca      []byte
	http    *http.Client
	log     bytes.Buffer
	cmd     *exec.Cmd
	done    chan struct{}
	err     error
}

// New starts both and waits until the server is ready.
func New(t testing.TB, users ...string) *Server {
	t.Helper()
	Need(t)
	etcd := membertest.New(t, membertest.Options{Size: 1})
	s := Over(t, etcd.Members[0].Address, Below{Endpoints: etcd.Endpoints()}, users...)
	s.Etcd = etcd
	return s
}

// Need gives the program, and skips a test where there is none.
func Need(t testing.TB) string {
	t.Helper()
	program := os.Getenv(Variable)
	if program == "" {
		t.Skipf("SKIPPED: %s names no Kubernetes API server: 'make kube-test' builds one and runs this test", Variable)
	}
	return program
}

// Over starts the server alone, over an etcd that is there, on the loopback
// address that ends in 200 instead of near's last number.
func Over(t testing.TB, near netip.Addr, below Below, users ...string) *Server {
	t.Helper()
	host := near.As4()
	host[3] = 200
	s := &Server{t: t, program: Need(t), below: below, address: netip.AddrPortFrom(netip.AddrFrom4(host), 6443), dir: t.TempDir()}
	if err := s.keys(append([]string{Admin}, users...)); err != nil {
		t.Fatal(err)
	}
	s.http = s.client()
	s.Start()
	s.WaitReady()
	return s
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) args() []string {
	return []string{
		"--etcd-servers=" + strings.Join(s.below.Endpoints, ","),
		"--etcd-cafile=" + s.below.CA, "--etcd-certfile=" + s.below.Cert, "--etcd-keyfile=" + s.below.Key,
		"--bind-address=" + s.address.Addr().String(), "--advertise-address=" + s.address.Addr().String(),
		fmt.Sprintf("--secure-port=%d", s.address.Port()),
		"--tls-cert-file=" + s.file("server.crt"), "--tls-private-key-file=" + s.file("server.key"),
		"--token-auth-file=" + s.file("tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.file("sa.pub"), "--service-account-signing-key-file=" + s.file("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/24",
		// Nobody makes service accounts here, and nobody needs the server's own address.
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
	}
}

// Start starts the server's process, also after Stop.
func (s *Server) Start() {
	s.t.Helper()
	cmd := exec.Command(s.program, s.args()...)
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() {
		s.err = cmd.Wait()
		close(done)
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if s.t.Failed() && s.cmd == cmd {
			s.t.Logf("end of the API server's log:\n%s", s.log.Bytes()[max(0, s.log.Len()-4000):])
		}
	})
}

// Stop ends the process as if its machine had lost power; etcd goes on.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Signal sends a signal, such as SIGSTOP.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// WaitReady waits until the server calls itself ready.
func (s *Server) WaitReady() {
	s.t.Helper()
	for until := time.Now().Add(Patience); ; {
		if code, _ := s.call(http.MethodGet, "/readyz", "", nil); code == http.StatusOK {
			return
		}
		select {
		case <-s.done:
			s.t.Fatalf("the API server ended: %v", s.err)
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(until) {
			s.t.Fatal("the API server does not get ready")
		}
	}
}

// Config is how a user reaches the server.
func (s *Server) Config(user string) *rest.Config {
	return &rest.Config{Host: "https://" + s.address.String(), BearerToken: token(user), TLSClientConfig: rest.TLSClientConfig{CAData: s.ca}}
}
