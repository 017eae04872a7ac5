package kubernetes_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"suffrage/lease"
	"suffrage/lease/kubernetes"
	"suffrage/mesh-tests/kubetest"
)

// fleet is a server with a free Lease in a namespace.
func fleet(t *testing.T) (*kubetest.Server, *kubernetes.Store) {
	t.Helper()
	s := kubetest.New(t)
	s.Namespace(t, "fleet")
	st := open(t, s, kubetest.Admin, "fleet")
	if err := lease.Create(patient(t), st, timing().Duration); err != nil {
		t.Fatal(err)
	}
	return s, st
}

// Power loss of the API server, with etcd up, and the other way round: a holder
// whose Lease outlasts it goes on in the same term, and what it writes is there.
func TestServersRestart(t *testing.T) {
	t.Parallel()
	s, st := fleet(t)
	err := lease.Run(patient(t), patiently(), st, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
		for i, restart := range []func(){
			func() { s.Stop(); s.Start(); s.WaitReady() },
			func() {
				m := s.Etcd.Members[0]
				m.Signal(syscall.SIGKILL)
				_, _ = m.Wait()
				m.Start(false, false)
				m.WaitServing()
				s.WaitReady()
			},
		} {
			restart()
			want := strconv.Itoa(i)
			if err := h.Write(ctx, []byte(want)); err != nil {
				return err
			}
			if err := h.Check(ctx); err != nil {
				return err
			}
			if seen, err := st.Get(ctx); err != nil || string(seen.Record.Journal) != want || seen.Record.Term != h.Term() {
				t.Errorf("there is %+v (%v), want journal %s in term %d", seen.Record, err, want, h.Term())
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A server that is frozen for longer than the Lease lasts: its holder stops by
// itself, and once the server goes on the next one has the journal.
func TestServerFrozen(t *testing.T) {
	t.Parallel()
	s, st := fleet(t)
	var term lease.Term
	err := lease.Run(patient(t), timing(), st, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
		term = h.Term()
		if err := h.Write(ctx, []byte("step 6")); err != nil {
			return err
		}
		s.Signal(syscall.SIGSTOP)
		<-ctx.Done()
		return h.Check(ctx)
	})
	s.Signal(syscall.SIGCONT)
	if !errors.Is(err, lease.ErrLost) {
		t.Errorf("the holder ended with %v, want ErrLost", err)
	}
	err = lease.Run(patient(t), timing(), st, lease.NewHolder("h2"), "test", func(ctx context.Context, h *lease.Held) error {
		if h.Term() <= term || string(h.Journal()) != "step 6" {
			t.Errorf("the next one has term %d and journal %q, want above %d and the first one's", h.Term(), h.Journal(), term)
		}
		return h.Check(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// Whatever is written to the Lease by hand ends the holder's, also what is not
// read: who did it wanted it to end.
func TestEditedByHand(t *testing.T) {
	t.Parallel()
	s, st := fleet(t)
	for _, patch := range []string{
		`{"spec":{"holderIdentity":null}}`,
		`{"metadata":{"annotations":{"suffrage.io/lease":null}}}`,
		`{"metadata":{"labels":{"team":"blue"}}}`,
	} {
		s.Delete(t, path("fleet"))
		if err := lease.Create(patient(t), st, timing().Duration); err != nil {
			t.Fatal(err)
		}
		err := lease.Run(patient(t), patiently(), st, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
			s.Patch(t, path("fleet"), patch)
			if err := h.Check(ctx); !errors.Is(err, lease.ErrLost) {
				t.Errorf("after %s Check gave %v, want ErrLost", patch, err)
			}
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("after %s the holder ended with %v, want ErrLost", patch, err)
		}
	}
}

// meddled is a store at which somebody else writes between a read and each of
// the next writes.
type meddled struct {
	lease.Store
	mu     sync.Mutex
	left   int
	meddle func()
}

func (m *meddled) Put(ctx context.Context, r lease.Record, old lease.Version) (lease.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left > 0 {
		m.left--
		m.meddle()
	}
	return m.Store.Put(ctx, r, old)
}

// Conflicts while it is taken are tried again, as often as they come.
func TestConflictOnEveryUpdate(t *testing.T) {
	t.Parallel()
	s, st := fleet(t)
	m := &meddled{Store: st, left: 8}
	m.meddle = func() { s.Patch(t, path("fleet"), `{"metadata":{"labels":{"n":"`+strconv.Itoa(m.left)+`"}}}`) }
	err := lease.Run(patient(t), patiently(), m, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
		if m.left != 0 {
			t.Errorf("it was taken with %d writes of others to come", m.left)
		}
		return h.Check(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// A host on the way that dies leaves connections that nobody answers on: only
// the call that was on one fails.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	s, _ := fleet(t)
	p := newProxy(t, strings.TrimPrefix(s.Config(kubetest.Admin).Host, "https://"))
	cfg := s.Config(kubetest.Admin)
	cfg.Host = "https://" + p.Addr().String()
	cfg.TLSClientConfig = rest.TLSClientConfig{CAData: cfg.CAData, ServerName: strings.Split(p.server, ":")[0]}
	st, err := kubernetes.New(cfg, "fleet")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if _, err := st.Get(patient(t)); err != nil {
		t.Fatal(err)
	}
	p.silence()
	if _, err := st.Get(brief(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("over a dead connection it gave %v, want a timeout", err)
	}
	if _, err := st.Get(patient(t)); err != nil {
		t.Errorf("the next call gave %v, want an answer over a new connection", err)
	}
}

// proxy leads connections to the server until it is told to go silent on those
// that there are.
type proxy struct {
	net.Listener
	server string
	mu     sync.Mutex
	open   []net.Conn
	quiet  chan struct{}
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, server: server, quiet: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.DialTimeout("tcp", server, 10*time.Second)
			if err != nil {
				c.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, c, up)
			quiet := p.quiet
			p.mu.Unlock()
			wg.Go(func() { lead(up, c, quiet) })
			wg.Go(func() { lead(c, up, quiet) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

// silence swallows what comes over the present connections.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.quiet)
	p.quiet = make(chan struct{})
}

func lead(to io.Writer, from net.Conn, quiet chan struct{}) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		select {
		case <-quiet:
			continue
		default:
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
