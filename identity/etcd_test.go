package identity_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// etcd's own code must take our keys and certificates, for serving and for dialling, with the client
// certificate required and its names checked against the address it comes from, as between peers.
func TestEtcdTakesTheCertificates(t *testing.T) {
	a, dir := newAuthority(t)
	k := newKey(t)
	keyFile, certFile := filepath.Join(dir, "host.key"), filepath.Join(dir, "host.crt")
	if err := k.Save(keyFile); err != nil {
		t.Fatal(err)
	}
	certPEM, err := a.Sign(request(t, k, "h1", "127.0.9.1"), fleetOf(t, at("h1", "127.0.9.1", k)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(certFile, certPEM, 0o644); err != nil {
		t.Fatal(err)
	}
	info := transport.TLSInfo{CertFile: certFile, KeyFile: keyFile, TrustedCAFile: filepath.Join(dir, "ca.crt"), ClientCertAuth: true}
	for _, address := range []string{"127.0.9.1", "127.0.0.1"} {
		t.Run(address, func(t *testing.T) {
			l, err := transport.NewListener(address+":0", "https", &info) // checks names as peers do
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			served := make(chan error, 1)
			go func() {
				conn, err := l.Accept()
				if err == nil {
					_, err = conn.Write([]byte{1})
					conn.Close()
				}
				served <- err
			}()
			cfg, err := info.ClientConfig()
			if err != nil {
				t.Fatal(err)
			}
			d := &net.Dialer{Timeout: 30 * time.Second}
			conn, err := tls.DialWithDialer(d, "tcp", l.Addr().String(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
	// A certificate of another authority is refused by etcd's client.
	_, strangerDir := newAuthority(t)
	l, err := transport.NewListener("127.0.0.1:0", "https", &info)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := info
	other.TrustedCAFile = filepath.Join(strangerDir, "ca.crt")
	cfg, err := other.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := tls.Dial("tcp", l.Addr().String(), cfg); err == nil {
		conn.Close()
		t.Error("two authorities of the same subject were taken for one")
	}
}
