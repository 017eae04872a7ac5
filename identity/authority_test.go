package identity_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/identity"
)

func newAuthority(t testing.TB) (*identity.Authority, string) {
	t.Helper()
	dir := t.TempDir()
	a, err := identity.NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func request(t testing.TB, k *identity.Key, name, address string) []byte {
	t.Helper()
	csr, err := identity.Request(k, name, netip.MustParseAddr(address))
	if err != nil {
		t.Fatal(err)
	}
	return csr
}

func fleetOf(t testing.TB, hosts ...identity.RosterHost) *identity.Roster {
	t.Helper()
	r, err := identity.NewRoster(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func at(name, address string, k *identity.Key) identity.RosterHost {
	return identity.RosterHost{Name: name, Address: netip.MustParseAddr(address), Port: 7400, Fingerprint: k.Fingerprint()}
}

func TestSignedCertificate(t *testing.T) {
	a, dir := newAuthority(t)
	k1, k2 := newKey(t), newKey(t)
	for _, host := range []identity.RosterHost{at("h1", "100.64.0.1", k1), at("h2", "fd7a::2", k2)} {
		k := map[string]*identity.Key{"h1": k1, "h2": k2}[host.Name]
		certPEM, err := a.Sign(request(t, k, host.Name, host.Address.String()), fleetOf(t, host), 0)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := identity.ParseCertificate(certPEM)
		if err != nil {
			t.Fatal(err)
		}
		if p := identity.CheckCertificate(cert, host, a.Certificate(), time.Now()); len(p) != 0 {
			t.Errorf("problems: %v", p)
		}
		pool := x509.NewCertPool()
		pool.AddCert(a.Certificate())
		for _, name := range []string{host.Name, "localhost", "127.0.0.1", host.Address.String()} {
			for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				if _, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if n := len(cert.DNSNames) + len(cert.IPAddresses); n != 4 || cert.IsCA || cert.Subject.CommonName != host.Name {
			t.Errorf("%d names, CA %v, subject %s", n, cert.IsCA, cert.Subject)
		}
		if days := time.Until(cert.NotAfter).Hours() / 24; days < 364 || days > 366 {
			t.Errorf("good for %.0f days, want a year", days)
		}
	}
	again, err := identity.LoadAuthority(dir)
	if err != nil || !again.Certificate().Equal(a.Certificate()) {
		t.Errorf("read again: %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	a, _ := newAuthority(t)
	k1, other := newKey(t), newKey(t)
	r := fleetOf(t, at("h1", "100.64.0.1", k1))
	altered := request(t, k1, "h1", "100.64.0.1")
	block, _ := pem.Decode(altered)
	// The name inside, changed after signing.
	block.Bytes = bytes.Replace(block.Bytes, []byte("h1"), []byte("h2"), 1)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ecDER, _ := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "h1"}}, ec)
	good := request(t, k1, "h1", "100.64.0.1")
	for _, tt := range []struct {
		name     string
		csr      []byte
		validity time.Duration
		want     string
	}{
		{"a host that nobody entered", request(t, k1, "h9", "100.64.0.1"), 0, `identity: sign: the request is for host "h9", which is not in the roster: add it, or ask again with the right name`},
		{"another key under h1's name", request(t, other, "h1", "100.64.0.1"), 0, "identity: sign: the request for host h1 has the fingerprint " + other.Fingerprint().String() + ", the roster has " + k1.Fingerprint().String() + ": correct the roster, or ask again on h1 ('suffrage identity request')"},
		{"another address", request(t, k1, "h1", "100.64.0.2"), 0, "identity: sign: the request for host h1 has the address [100.64.0.2], the roster has 100.64.0.1: correct the roster, or ask again on h1 ('suffrage identity request')"},
		{"altered on the way", pem.EncodeToMemory(block), 0, "identity: not a certificate request: its signature does not belong to its key, so it was altered on the way: x509: Ed25519 verification failure"},
		{"a key of another kind", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: ecDER}), 0, "identity: not a certificate request: its key is of kind ECDSA, a host's is ed25519"},
		{"no request", []byte("hello"), 0, "identity: not a certificate request: want one PEM block of type CERTIFICATE REQUEST, as 'suffrage identity request' prints it"},
		{"endless", bytes.Repeat(good, 500), 0, "identity: not a certificate request: larger than 64 KiB"},
		{"validity too short", good, time.Minute, "identity: sign: validity 1m0s: allowed: 1h0m0s to 87600h0m0s"},
		{"validity too long", good, 20 * 365 * 24 * time.Hour, "identity: sign: validity 175200h0m0s: allowed: 1h0m0s to 87600h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := a.Sign(tt.csr, r, tt.validity)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	_, err := a.Sign(request(t, other, "h1", "100.64.0.1"), r, 0)
	if e, ok := errors.AsType[*identity.RequestRefusedError](err); !ok || e.Field != "fingerprint" {
		t.Errorf("%v: want a RequestRefusedError", err)
	}
}

// A request may ask for more than its host; only the roster's names are signed.
func TestSignGrantsNoMoreThanTheRoster(t *testing.T) {
	a, _ := newAuthority(t)
	path := filepath.Join(t.TempDir(), "k")
	k := newKey(t)
	if err := k.Save(path); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	block, _ := pem.Decode(data)
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "h1", Organization: []string{"system:masters"}},
		DNSNames:    []string{"h2", "*.example.org"},
		IPAddresses: []net.IP{net.IPv4(100, 64, 0, 1)},
	}, private)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, err := a.Sign(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), fleetOf(t, at("h1", "100.64.0.1", k)), 0)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := identity.ParseCertificate(certPEM)
	if !slices.Equal(cert.DNSNames, []string{"h1", "localhost"}) || len(cert.Subject.Organization) != 0 {
		t.Errorf("signed %v for %s", cert.DNSNames, cert.Subject)
	}
}

func TestAuthorityFiles(t *testing.T) {
	_, dir := newAuthority(t)
	key, crt := filepath.Join(dir, "ca.key"), filepath.Join(dir, "ca.crt")
	for path, mode := range map[string]fs.FileMode{key: 0o600, crt: 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: mode %v (%v), want %v", path, info.Mode(), err, mode)
		}
	}
	if _, err := identity.NewAuthority(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second authority over the first: %v", err)
	}
	before, _ := identity.LoadKey(key)
	if err := os.Remove(crt); err != nil {
		t.Fatal(err)
	}
	a, err := identity.NewAuthority(dir) // as after a crash between the two files
	if err != nil {
		t.Fatal(err)
	}
	if fp, _ := identity.FingerprintOf(a.Certificate().PublicKey); fp != before.Fingerprint() {
		t.Error("an interrupted init must go on with the key that is there")
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.LoadAuthority(dir); !errors.Is(err, identity.ErrKeyFile) || !strings.Contains(err.Error(), "chmod 0600 "+key) {
		t.Errorf("a readable ca.key: %v", err)
	}
	_, otherDir := newAuthority(t)
	if err := os.Rename(filepath.Join(otherDir, "ca.crt"), crt); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.LoadAuthority(dir); err == nil || !strings.Contains(err.Error(), "is not the certificate of") {
		t.Errorf("files of two authorities: %v", err)
	}
	if _, err := identity.LoadAuthority(t.TempDir()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "identity ca init") {
		t.Errorf("no authority: %v", err)
	}
}

func TestCheckCertificate(t *testing.T) {
	a, _ := newAuthority(t)
	stranger, _ := newAuthority(t)
	k, other := newKey(t), newKey(t)
	host := at("h1", "100.64.0.1", k)
	certPEM, err := a.Sign(request(t, k, "h1", "100.64.0.1"), fleetOf(t, host), 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := identity.ParseCertificate(certPEM)
	long, _ := a.Sign(request(t, k, "h1", "100.64.0.1"), fleetOf(t, host), 0)
	year, _ := identity.ParseCertificate(long)
	renamed, moved, rekeyed := host, host, host
	renamed.Name, moved.Address, rekeyed.Fingerprint = "h7", netip.MustParseAddr("fd7a::7"), other.Fingerprint()
	now := time.Now()
	for _, tt := range []struct {
		name    string
		cert    *x509.Certificate
		host    identity.RosterHost
		ca      *x509.Certificate
		now     time.Time
		codes   []string
		missing []string
	}{
		{"all well", year, host, a.Certificate(), now, nil, nil},
		{"the host was renamed", year, renamed, nil, now, []string{identity.CertificateNames}, []string{"h7"}},
		{"the mesh address changed", year, moved, nil, now, []string{identity.CertificateNames}, []string{"fd7a::7"}},
		{"the key changed", year, rekeyed, nil, now, []string{identity.CertificateKey}, nil},
		{"another authority", year, host, stranger.Certificate(), now, []string{identity.CertificateIssuer}, nil},
		{"two days left", cert, host, nil, now, []string{identity.CertificateExpiring}, nil},
		{"past its end", cert, host, nil, now.Add(72 * time.Hour), []string{identity.CertificateExpired}, nil},
		{"a clock in 1970", cert, host, nil, time.Unix(0, 0), []string{identity.CertificateEarly}, nil},
		{"the authority's own certificate in its place", a.Certificate(), host, nil, now,
			[]string{identity.CertificateKey, identity.CertificateNames, identity.CertificateUsage}, []string{"h1", "localhost", "127.0.0.1", "100.64.0.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var codes, missing []string
			for _, p := range identity.CheckCertificate(tt.cert, tt.host, tt.ca, tt.now) {
				codes, missing = append(codes, p.Code), append(missing, p.Missing...)
				if p.Host != tt.host.Name || p.Lift == "" || p.Detail == "" {
					t.Errorf("%+v: want host, detail and what would lift it", p)
				}
			}
			if !slices.Equal(codes, tt.codes) || !slices.Equal(missing, tt.missing) {
				t.Errorf("codes %v missing %v, want %v %v", codes, missing, tt.codes, tt.missing)
			}
		})
	}
}
