package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

const (
	// DefaultValidity is how long a certificate is good where nothing else is asked.
	DefaultValidity = 365 * 24 * time.Hour
	// MinValidity is the shortest validity that Sign grants; below it a certificate would expire while
	// it is carried to its host.
	MinValidity = time.Hour

	authorityValidity = 10 * 365 * 24 * time.Hour
	// backdate lets a host without a battery clock, which starts in the past, use a new certificate.
	backdate = 24 * time.Hour
)

// Authority signs the certificates of etcd's own TLS. Its key is on one machine, in ca.key; every host
// has its certificate, ca.crt.
type Authority struct {
	key  *Key
	cert *x509.Certificate
	path string // of ca.crt, for errors
}

// NewAuthority makes ca.key (0600) and ca.crt (0644, good for ten years) in dir, which must exist. It
// refuses where ca.crt is already there. Where only ca.key is, it was interrupted and goes on with it.
func NewAuthority(dir string) (*Authority, error) {
	keyPath, certPath := filepath.Join(dir, "ca.key"), filepath.Join(dir, "ca.crt")
	if _, err := os.Lstat(certPath); err == nil {
		return nil, fmt.Errorf("identity: make authority %s: %w: every certificate of the fleet rests on it; move it away by hand to start over", certPath, fs.ErrExist)
	}
	key, err := LoadKey(keyPath)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = GenerateKey(); err == nil {
			err = key.Save(keyPath)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("identity: make authority: %w", err)
	}
	cert, err := authorityCertificate(key, time.Now())
	if err != nil {
		return nil, err
	}
	if err := writeNew(certPath, encodeCertificate(cert), 0o644); err != nil {
		return nil, fmt.Errorf("identity: make authority: %w", err)
	}
	return &Authority{key, cert, certPath}, nil
}

func authorityCertificate(key *Key, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "suffrage etcd authority"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs hosts, no further authorities
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.private.Public(), key.private)
	if err != nil {
		return nil, fmt.Errorf("identity: make authority: %w", err)
	}
	return x509.ParseCertificate(der)
}

// LoadAuthority reads what NewAuthority made.
func LoadAuthority(dir string) (*Authority, error) {
	keyPath, certPath := filepath.Join(dir, "ca.key"), filepath.Join(dir, "ca.crt")
	key, err := LoadKey(keyPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("identity: read authority %s: %w: sign on the machine that has the authority, or make one with 'suffrage identity ca init'", keyPath, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("identity: read authority: %w", err)
	}
	cert, err := LoadCertificate(certPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("identity: read authority %s: %w: 'suffrage identity ca init' makes it from ca.key", certPath, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("identity: read authority: %w", err)
	}
	if fp, err := FingerprintOf(cert.PublicKey); err != nil || fp != key.Fingerprint() || !cert.IsCA {
		return nil, fmt.Errorf("identity: read authority: %s is not the certificate of %s: put back the two that were made together", certPath, keyPath)
	}
	return &Authority{key, cert, certPath}, nil
}

// Certificate is the authority's own.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Sign issues the certificate that a request asks for, as PEM. The name must be in the roster, and the
// request's key and address those that the roster has for it; otherwise the error is a
// *RequestRefusedError. The certificate names the host, localhost, 127.0.0.1 and the mesh address, for
// server and client use. A validity of 0 is DefaultValidity; it never outlasts the authority.
func (a *Authority) Sign(csrPEM []byte, roster *Roster, validity time.Duration) ([]byte, error) {
	now := time.Now()
	if validity == 0 {
		validity = DefaultValidity
	}
	if validity < MinValidity || validity > authorityValidity {
		return nil, fmt.Errorf("identity: sign: validity %s: allowed: %s to %s", validity, MinValidity, authorityValidity)
	}
	if !now.Before(a.cert.NotAfter) {
		return nil, fmt.Errorf("identity: sign: the authority %s expired on %s: make a new one and sign every host again", a.path, a.cert.NotAfter.Format(time.DateOnly))
	}
	request, err := parseRequest(csrPEM)
	if err != nil {
		return nil, err
	}
	host, err := admit(request, roster)
	if err != nil {
		return nil, err
	}
	until := now.Add(validity)
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	return a.issue(host, request.PublicKey.(ed25519.PublicKey), now.Add(-backdate), until)
}

func (a *Authority) issue(host RosterHost, public ed25519.PublicKey, from, until time.Time) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	names, addresses := requiredNames(host)
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: host.Name},
		NotBefore:             from,
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              names,
		IPAddresses:           addresses,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key.private)
	if err != nil {
		return nil, fmt.Errorf("identity: sign for host %s: %w", host.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// newSerial is random, so that two authorities of one name never give a number twice.
func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("identity: make a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}
