package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"suffrage/identity"
	"suffrage/member/membertest"
)

// TestWhoMayComeIn: the certificate of this host's datastore, and the fleet's.
func TestWhoMayComeIn(t *testing.T) {
	f := &fleet{Cluster: membertest.New(t, membertest.Options{Size: 1, TLS: true}), t: t}
	f.o, f.log = options(t, f.Cluster)
	dir := t.TempDir()
	f.o.TLS = TLS{CA: f.CA, Cert: f.Cert, Key: f.Key, Client: filepath.Join(dir, "datastore.crt")}
	f.start()
	f.leads("it leads", anywhere)

	key := newKey(t)
	own := issued(t, dir, "own", key, 0)
	if err := f.put(own); err == nil {
		t.Error("it came in before there was a datastore.crt")
	}
	f.until("the log says what to do", func() bool { return strings.Contains(f.log.text(), "suffrage identity datastore") })
	install(t, f.o.TLS.Client, own.Certificate[0])
	if err := f.put(own); err != nil {
		t.Error("its own certificate:", err)
	}
	// Renewed in the file: the client's copy goes on.
	install(t, f.o.TLS.Client, issued(t, dir, "renewed", key, time.Hour).Certificate[0])
	if err := f.put(own); err != nil {
		t.Error("its own certificate, of before the renewal:", err)
	}
	if err := f.put(pair(t, f.Cert, f.Key)); err != nil {
		t.Error("the fleet's certificate:", err)
	}
	for what, c := range map[string]tls.Certificate{
		"another key":            issued(t, dir, "other", newKey(t), 0),
		"a stranger's authority": stranger(t),
		"no certificate":         {},
	} {
		if err := f.put(c); err == nil {
			t.Errorf("%s came in", what)
		}
	}
	install(t, f.o.TLS.Client, issued(t, dir, "new", newKey(t), 0).Certificate[0])
	if err := f.put(own); err == nil {
		t.Error("a key that was replaced came in")
	}

	// It is of no use at etcd itself.
	install(t, f.o.TLS.Client, own.Certificate[0])
	direct := *f
	direct.o.Config.Listen = f.Members[0].Address.String() + ":2379"
	if err := direct.put(own); err == nil {
		t.Error("etcd accepts the datastore's certificate")
	}
}

// put writes once with a certificate. It is plain gRPC: etcd's client would go on
// trying to connect.
func (f *fleet) put(c tls.Certificate) error {
	f.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+f.o.Config.Listen, grpc.WithTransportCredentials(credentials.NewTLS(f.shows(c))))
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), membertest.Patience)
	defer cancel()
	_, err = pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("k")})
	return err
}

// shows is the TLS of a client with a certificate.
func (f *fleet) shows(c tls.Certificate) *tls.Config {
	f.t.Helper()
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(f.CA)
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		f.t.Fatal(err)
	}
	t := &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	if c.PrivateKey != nil {
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
	}
	return t
}

var loopback = netip.MustParseAddr("127.0.0.1")

// install replaces a certificate's file.
func install(t *testing.T, file string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) *identity.Key {
	t.Helper()
	key, err := identity.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func issued(t *testing.T, dir, name string, key *identity.Key, validity time.Duration) tls.Certificate {
	t.Helper()
	text, err := identity.Datastore(key, "h1", validity)
	if err != nil {
		t.Fatal(err)
	}
	cert, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := os.WriteFile(cert, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := key.Save(keyFile); err != nil {
		t.Fatal(err)
	}
	return pair(t, cert, keyFile)
}

func pair(t testing.TB, cert, key string) tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stranger is a host of another fleet.
func stranger(t *testing.T) tls.Certificate {
	t.Helper()
	dir := t.TempDir()
	ca, err := identity.NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	roster, err := identity.NewRoster([]identity.RosterHost{{Name: "h1", Address: loopback, Fingerprint: key.Fingerprint()}})
	if err != nil {
		t.Fatal(err)
	}
	csr, err := identity.Request(key, "h1", loopback)
	if err != nil {
		t.Fatal(err)
	}
	text, err := ca.Sign(csr, roster, 0)
	if err != nil {
		t.Fatal(err)
	}
	cert, keyFile := filepath.Join(dir, "h1.crt"), filepath.Join(dir, "h1.key")
	if err := os.WriteFile(cert, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := key.Save(keyFile); err != nil {
		t.Fatal(err)
	}
	return pair(t, cert, keyFile)
}
