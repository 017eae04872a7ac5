// Package identity says who a host is: a key of its own, the roster that names every host's key, TLS
// between hosts by those keys, and the certificates that etcd asks for.
//
// Words:
//
//   - Key: a host's ed25519 key. It is made on its host and never leaves it. It is also the key of the
//     host's etcd certificate, so that there is one secret per host to look after.
//   - Fingerprint: the name of a public key.
//   - Roster: the file, equal on every host, that gives each host's name, mesh address and
//     fingerprint. It is public, and whoever can write it decides who belongs to the fleet.
//   - Authority: the certificate authority for etcd's own TLS, which cannot pin keys.
//
// The contract:
//
//   - A peer is who its key says. Addresses and host names are never proof, since relays, overlay
//     networks and reused leases stand in between; certificates between agents are made in memory and
//     only carry the key, so nothing expires and no clock is needed.
//   - No connection is resumed: a change of the roster holds from the next connection on. A connection
//     that stands is not cut; its owner asks PeerName again when it matters.
//   - A key file that others could read or write is refused, and never overwritten.
//   - No error, log line or format verb shows a private key or the content of a key file.
//   - The Authority signs only for a name, a key and an address that the roster holds together; what a
//     request asks for beyond that is not signed.
//
// Weak points, admitted: the Authority cannot revoke. A certificate is good until it expires, to
// whoever has the key (see docs/identity.md for what to do when a key is lost).
package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"time"
)

// ErrKeyFile is why a key file is not used: its mode, its kind or its content.
var ErrKeyFile = errors.New("identity: key file refused")

// Key is a host's ed25519 key. It is immutable, safe for use by several goroutines, and prints as its
// fingerprint under every verb.
type Key struct {
	private     ed25519.PrivateKey
	fingerprint Fingerprint
	certificate tls.Certificate // self-signed; carries the public key between agents
}

// GenerateKey makes a new key, in memory.
func GenerateKey() (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("identity: make a key: %w", err)
	}
	return newKey(private)
}

func newKey(private ed25519.PrivateKey) (*Key, error) {
	fp, err := FingerprintOf(private.Public())
	if err != nil {
		return nil, err
	}
	// No peer looks at the dates: the key is pinned. Fixed dates work on a host whose clock is wrong.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	template.Subject.CommonName = "suffrage"
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("identity: make the certificate of %s: %w", fp, err)
	}
	return &Key{private, fp, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// Fingerprint names the key.
func (k *Key) Fingerprint() Fingerprint { return k.fingerprint }

// Format shows the fingerprint under every verb, so that no %v of a struct shows the key.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

func (k Key) String() string { return "key " + k.fingerprint.String() }

// LogValue shows the fingerprint in logs.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// encode gives the key as PKCS #8 in PEM, the form that etcd reads too.
func (k *Key) encode() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("identity: encode %s: %w", k, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// parseKey reads what encode writes. The decoder's own errors are left out: they may show the content.
func parseKey(data []byte) (*Key, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%w: not one PEM block of type PRIVATE KEY", ErrKeyFile)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: its PEM block holds no PKCS #8 key", ErrKeyFile)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: it holds a key of type %T, want ed25519", ErrKeyFile, parsed)
	}
	return newKey(private)
}
