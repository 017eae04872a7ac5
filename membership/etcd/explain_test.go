package etcd_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"suffrage/config"
	"suffrage/fitness"
	"suffrage/member/membertest"
	"suffrage/membership/etcd"
)

// Every way not to reach etcd, met on real connections, is said in words and
// with something to do.
func TestExplain(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1, TLS: true})
	good := configOf(c)
	url := good.Endpoints[0]
	_, other := certificate(t, time.Now().Add(time.Hour))
	silent := listen(t)
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	for _, test := range []struct {
		name       string
		set        func(*etcd.Config)
		what, next string
	}{
		{"wrong CA", func(c *etcd.Config) { c.CA = other.cert }, "is not in the CA file", "server-ca.crt"},
		{"system's CAs", func(c *etcd.Config) { c.CA = "" }, "is not in the CA file", "give the CA"},
		{"no client certificate", func(c *etcd.Config) { c.Cert, c.Key = "", "" }, "requires a client certificate", "--cert and --key"},
		{"client certificate of strangers", func(c *etcd.Config) { c.Cert, c.Key = other.cert, other.key }, "refused our client certificate", "--trusted-ca-file"},
		{"an address that the certificate lacks", func(cfg *etcd.Config) {
			cfg.Endpoints = []string{"https://" + forward(t, strings.TrimPrefix(url, "https://"))}
		}, "does not name 127.0.0.2", "issue the certificate again"},
		{"plain to TLS", func(c *etcd.Config) { c.Endpoints = []string{strings.Replace(url, "https", "http", 1)} }, "closed before any answer", "https://"},
		{"TLS to plain", func(c *etcd.Config) { c.Endpoints = []string{strings.Replace(page.URL, "http", "https", 1)} }, "not in TLS", "http://"},
		{"another service", func(c *etcd.Config) { c.Endpoints = []string{page.URL} }, "not etcd's client port", "2379"},
		{"peer port", func(c *etcd.Config) { c.Endpoints = []string{strings.Replace(url, "2379", "2380", 1)} }, "not etcd's client port", "2379"},
		{"nothing listens", func(c *etcd.Config) { c.Endpoints = []string{"https://127.0.0.1:1"} }, "nothing listens at 127.0.0.1:1", "port"},
		{"accepts and says nothing", func(c *etcd.Config) { c.Endpoints = []string{"http://" + silent} }, "no answer came in time", "frozen"},
		{"no such name", func(c *etcd.Config) { c.Endpoints = []string{"https://h1.invalid:2379"} }, "h1.invalid", ""},
		{"no such file", func(c *etcd.Config) { c.CA = "/nowhere/ca.crt" }, "/nowhere/ca.crt does not exist", "configuration"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := good
			cfg.Timeout = fitness.Duration(time.Second)
			test.set(&cfg)
			ob := etcd.NewObserver(cfg, etcd.Options{ReadOnly: true}).Observe(t.Context())
			if ob.Error == "" || len(ob.Members) != 0 || len(ob.Troubles) != 1 {
				t.Fatalf("it was reached: %+v", ob)
			}
			if got := ob.Troubles[0]; !strings.Contains(got.What, test.what) || !strings.Contains(got.Next, test.next) || got.Next == "" {
				t.Errorf("%s\n→ %s\nwant %q and %q", got, got.Next, test.what, test.next)
			}
		})
	}
}

func TestExplainWithoutConnection(t *testing.T) {
	_, expired := certificate(t, time.Now().Add(-time.Hour))
	cfg := etcd.DefaultConfig()
	cfg.Endpoints, cfg.Cert, cfg.Key = []string{"https://127.0.0.1:1"}, expired.cert, expired.cert
	if _, err := cfg.TLS(); err == nil || !strings.Contains(err.Error(), expired.cert) {
		t.Errorf("a certificate given as a key: %v", err)
	}
	_, stranger := certificate(t, time.Now().Add(time.Hour))
	cfg.Key = stranger.key
	_, mismatch := cfg.TLS()
	for _, test := range []struct {
		err  error
		want string
	}{
		{x509.CertificateInvalidError{Reason: x509.Expired}, "expired"},
		{context.Canceled, "given up"},
		{context.DeadlineExceeded, "no connection in time"},
		{mismatch, "does not match"},
		{errors.New("a novelty"), "a novelty"}, // never swallowed
	} {
		if what, next := etcd.Explain(test.err, "https://h:2379"); !strings.Contains(what, test.want) || next == "" {
			t.Errorf("%v: %q, %q", test.err, what, next)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		why string
		set func(*etcd.Config)
		key string
	}{
		{"nothing to reach", func(c *etcd.Config) { c.Endpoints = nil }, "endpoints"},
		{"no port", func(c *etcd.Config) { c.Endpoints = []string{"https://10.0.0.1"} }, "endpoints[0]"},
		{"no scheme", func(c *etcd.Config) { c.Endpoints = []string{"10.0.0.1:2379"} }, "endpoints[0]"},
		{"half a certificate", func(c *etcd.Config) { c.Cert = "x" }, "cert"},
		{"no time at all", func(c *etcd.Config) { c.Timeout = 0 }, "timeout"},
	} {
		c := etcd.DefaultConfig()
		c.Endpoints = []string{"https://10.0.0.1:2379"}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		test.set(&c)
		var p config.Problem
		if err := c.Validate(); !errors.As(err, &p) || p.Key != test.key {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}

type files struct{ cert, key string }

// certificate is self-signed, for client use, by nobody's authority.
func certificate(t *testing.T, until time.Time) (*x509.Certificate, files) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stranger"}, NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := files{filepath.Join(dir, "c.crt"), filepath.Join(dir, "c.key")}
	for path, block := range map[string]*pem.Block{f.cert: {Type: "CERTIFICATE", Bytes: der}, f.key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return template, f
}

// listen accepts and says nothing, as a frozen process does.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// forward passes connections on from 127.0.0.2.
func forward(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go func() { _, _ = copyBoth(in, out) }()
		}
	}()
	return l.Addr().String()
}

func copyBoth(a, b net.Conn) (int64, error) {
	go func() {
		_, _ = io.Copy(a, b)
		a.Close()
	}()
	n, err := io.Copy(b, a)
	b.Close()
	return n, err
}
