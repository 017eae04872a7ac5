package etcd

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"suffrage/member"
)

// proxy stands before a member's client port and can lose what passes.
type proxy struct {
	to string
	l  net.Listener

	mu      sync.Mutex
	deaf    bool // requests are lost from now on
	dumb    bool // answers are lost from now on
	streams map[net.Conn]bool
	wg      sync.WaitGroup
}

// proxies gives every member one: for membertest.Options.Set.
type proxies struct {
	t  *testing.T
	at map[string]*proxy // by client URL
}

func newProxies(t *testing.T) *proxies { return &proxies{t, map[string]*proxy{}} }

func (p *proxies) set(cfg *member.Config) {
	u, err := url.Parse(cfg.ListenClient)
	if err != nil {
		p.t.Fatal(err)
	}
	front := net.JoinHostPort(u.Hostname(), "2389")
	l, err := net.Listen("tcp", front)
	if err != nil {
		p.t.Fatal(err)
	}
	x := &proxy{to: u.Host, l: l, streams: map[net.Conn]bool{}}
	cfg.AdvertiseClient = "http://" + front
	p.at[cfg.AdvertiseClient] = x
	x.wg.Go(x.accept)
	p.t.Cleanup(func() {
		l.Close()
		x.cut()
		x.wg.Wait()
	})
}

// direct is a client URL that passes no proxy.
func direct(u string) string { return strings.Replace(u, ":2389", ":2379", 1) }

func (x *proxy) accept() {
	for {
		c, err := x.l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", x.to)
		if err != nil {
			c.Close()
			continue
		}
		x.mu.Lock()
		x.streams[c], x.streams[s] = true, true
		x.mu.Unlock()
		x.wg.Go(func() { x.copy(s, c, &x.deaf) })
		x.wg.Go(func() { x.copy(c, s, &x.dumb) })
	}
}

func (x *proxy) copy(to, from net.Conn, lost *bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		x.mu.Lock()
		lose := *lost
		x.mu.Unlock()
		if n > 0 && !lose {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (x *proxy) lose(requests, answers bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deaf, x.dumb = requests, answers
}

// cut closes what stands and passes everything again.
func (x *proxy) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.streams {
		c.Close()
	}
	clear(x.streams)
	x.deaf, x.dumb = false, false
}
