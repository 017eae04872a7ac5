package identity_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"suffrage/identity"
)

func named(name string, k *identity.Key) identity.RosterHost {
	return identity.RosterHost{Name: name, Address: netip.MustParseAddr("127.0.0.1"), Port: 7400, Fingerprint: k.Fingerprint()}
}

func rosterOf(t testing.TB, hosts ...identity.RosterHost) *identity.Roster {
	t.Helper()
	for i := range hosts { // addresses play no part in who a peer is; they only must differ
		hosts[i].Address = netip.AddrFrom4([4]byte{127, 0, 9, byte(i + 1)})
	}
	r, err := identity.NewRoster(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// meet makes one connection over loopback. The server answers a byte once its handshake is done; what
// each side's handshake, read or write ended with is returned with the client's state.
func meet(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(30 * time.Second))
		conn := tls.Server(raw, server)
		if err = conn.Handshake(); err == nil {
			_, err = conn.Write([]byte{1})
		}
		done <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(30 * time.Second))
	conn := tls.Client(raw, client)
	if clientErr = conn.Handshake(); clientErr == nil {
		_, clientErr = io.ReadFull(conn, make([]byte, 1)) // TLS 1.3: a refusal shows only here
	}
	if clientErr != nil {
		raw.Close()
	}
	return conn.ConnectionState(), <-done, clientErr
}

func TestHostsKnowEachOtherByKey(t *testing.T) {
	k1, k2 := newKey(t), newKey(t)
	r := rosterOf(t, named("h1", k1), named("h2", k2))
	h1, _ := r.ByName("h1")
	now := func() *identity.Roster { return r }
	state, serverErr, clientErr := meet(t, identity.ServerTLS(k1, now, "h2", "suffrage-ping/1"), identity.ClientTLS(k2, h1, "suffrage-ping/1"))
	if serverErr != nil || clientErr != nil {
		t.Fatal(serverErr, clientErr)
	}
	if state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "suffrage-ping/1" {
		t.Errorf("version %x, protocol %q", state.Version, state.NegotiatedProtocol)
	}
	if name, err := identity.PeerName(state, r); name != "h1" || err != nil {
		t.Errorf("the peer is %q (%v), want h1", name, err)
	}
}

func TestWrongKeyOfServer(t *testing.T) {
	k1, k2, impostor := newKey(t), newKey(t), newKey(t)
	r := rosterOf(t, named("h1", k1), named("h2", k2))
	h1, _ := r.ByName("h1")
	_, serverErr, clientErr := meet(t, identity.ServerTLS(impostor, func() *identity.Roster { return r }), identity.ClientTLS(k2, h1))
	wrong, ok := errors.AsType[*identity.WrongKeyError](clientErr)
	if !ok || wrong.Host != h1 || wrong.Got != impostor.Fingerprint() {
		t.Fatalf("client: %v, want a WrongKeyError with host and both keys", clientErr)
	}
	want := "identity: host h1 at 127.0.9.1:7400 showed the key " + impostor.Fingerprint().String() + ", the roster has " + k1.Fingerprint().String() +
		": compare with 'suffrage identity show' on h1; if it was set up anew, correct its entry in every roster, otherwise another machine answers at its address"
	if wrong.Error() != want {
		t.Errorf("got  %s\nwant %s", wrong, want)
	}
	if serverErr == nil {
		t.Error("the server's handshake went well: the client must not have spoken")
	}
}

func TestClientNotInRoster(t *testing.T) {
	k1, k2, stranger := newKey(t), newKey(t), newKey(t)
	r := rosterOf(t, named("h1", k1), named("h2", k2))
	h1, _ := r.ByName("h1")
	_, serverErr, clientErr := meet(t, identity.ServerTLS(k1, func() *identity.Roster { return r }), identity.ClientTLS(stranger, h1))
	unknown, ok := errors.AsType[*identity.UnknownKeyError](serverErr)
	if !ok || unknown.Got != stranger.Fingerprint() || unknown.Hosts != 2 {
		t.Errorf("server: %v, want an UnknownKeyError with the key", serverErr)
	}
	refused, ok := errors.AsType[*identity.RefusedError](identity.Explain(clientErr, stranger, h1))
	if !ok || refused.Host != h1 || refused.Mine != stranger.Fingerprint() {
		t.Fatalf("client: %v, want a RefusedError after Explain", clientErr)
	}
	want := "identity: host h1 at 127.0.9.1:7400 refused this host's key " + stranger.Fingerprint().String() + " (remote error: tls: bad certificate): put this host's entry in the roster on h1"
	if refused.Error() != want {
		t.Errorf("got  %s\nwant %s", refused, want)
	}
}

func TestRosterChangesAtRunTime(t *testing.T) {
	k1, k2 := newKey(t), newKey(t)
	with, without := rosterOf(t, named("h1", k1), named("h2", k2)), rosterOf(t, named("h1", k1))
	h1, _ := with.ByName("h1")
	var current atomic.Pointer[identity.Roster]
	server := identity.ServerTLS(k1, current.Load)
	client := identity.ClientTLS(k2, h1)
	client.ClientSessionCache = tls.NewLRUClientSessionCache(8) // a client that would resume if it could
	for _, step := range []struct {
		why    string
		roster *identity.Roster
		ok     bool
	}{
		{"no roster yet: nobody", nil, false},
		{"h2 is in", with, true},
		{"and can come again", with, true},
		{"h2 was taken out: its next connection fails", without, false},
		{"and back", with, true},
	} {
		current.Store(step.roster)
		state, serverErr, clientErr := meet(t, server, client)
		if ok := serverErr == nil && clientErr == nil; ok != step.ok {
			t.Errorf("%s: server %v, client %v", step.why, serverErr, clientErr)
		}
		if state.DidResume {
			t.Errorf("%s: a session was resumed", step.why)
		}
	}
}

func TestServerTakesNoLess(t *testing.T) {
	k1, k2 := newKey(t), newKey(t)
	r := rosterOf(t, named("h1", k1), named("h2", k2))
	h1, _ := r.ByName("h1")
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, ec.Public(), ec)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*tls.Config){
		"TLS 1.2":                func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
		"no client certificate":  func(c *tls.Config) { c.Certificates = nil },
		"a key of another kind":  func(c *tls.Config) { c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: ec}} },
		"no protocol of its own": func(c *tls.Config) { c.NextProtos = []string{"smtp"} },
		"somebody's certificate without the key": func(c *tls.Config) {
			other := c.Certificates[0]
			other.PrivateKey = ec
			c.Certificates = []tls.Certificate{other}
		},
	} {
		client := identity.ClientTLS(k2, h1, "h2")
		change(client)
		_, serverErr, clientErr := meet(t, identity.ServerTLS(k1, func() *identity.Roster { return r }, "h2"), client)
		if serverErr == nil || clientErr == nil {
			t.Errorf("%s: server %v, client %v: want both to fail", name, serverErr, clientErr)
		}
	}
}

func TestRefusalIsExplainedOverHTTP2(t *testing.T) {
	k1, stranger := newKey(t), newKey(t)
	r := rosterOf(t, named("h1", k1))
	h1, _ := r.ByName("h1")
	l, err := tls.Listen("tcp", "127.0.0.1:0", identity.ServerTLS(k1, func() *identity.Roster { return r }, "h2"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	defer func() { srv.Close(); <-served }()
	transport := &http.Transport{TLSClientConfig: identity.ClientTLS(stranger, h1, "h2"), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "https://"+l.Addr().String()+"/", nil)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		resp.Body.Close()
		t.Fatal("a stranger was served")
	}
	if _, ok := errors.AsType[*identity.RefusedError](identity.Explain(err, stranger, h1)); !ok {
		t.Errorf("%T %v: not recognised as a refusal", err, err)
	}
	if other := errors.New("connection refused"); identity.Explain(other, stranger, h1) != other {
		t.Error("another error must come back as it went in")
	}
}
