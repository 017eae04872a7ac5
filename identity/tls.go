package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// ServerTLS accepts any host of the roster that roster returns at the moment of the handshake, and
// nobody while it returns nil. TLS 1.3, client certificate required, protos offered by ALPN. A client
// of another key gets an UnknownKeyError on this side and the alert "bad certificate" on its own.
func ServerTLS(key *Key, roster func() *Roster, protos ...string) *tls.Config {
	c := base(key, protos)
	c.ClientAuth = tls.RequireAnyClientCert
	c.VerifyConnection = func(state tls.ConnectionState) error {
		_, err := PeerName(state, roster())
		return err
	}
	return c
}

// ClientTLS accepts the key of one host only; another one is a WrongKeyError.
func ClientTLS(key *Key, host RosterHost, protos ...string) *tls.Config {
	c := base(key, protos)
	c.VerifyConnection = func(state tls.ConnectionState) error {
		got, err := peerKey(state)
		if err != nil {
			return fmt.Errorf("identity: host %s at %s: %w", host.Name, host.AddrPort(), err)
		}
		if got != host.Fingerprint || got.IsZero() {
			return &WrongKeyError{Host: host, Got: got}
		}
		return nil
	}
	return c
}

func base(key *Key, protos []string) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{key.certificate},
		MinVersion:   tls.VersionTLS13,
		NextProtos:   protos,
		// VerifyConnection replaces the check of chain, name and dates: the key itself is pinned.
		// TLS proves in every handshake that the peer has the private half.
		InsecureSkipVerify: true,
		// A resumed session would outlive a host's removal from the roster.
		SessionTicketsDisabled: true,
	}
}

// PeerName says which host of the roster is at the other end of a connection.
func PeerName(state tls.ConnectionState, roster *Roster) (string, error) {
	got, err := peerKey(state)
	if err != nil {
		return "", fmt.Errorf("identity: peer: %w", err)
	}
	host, ok := roster.ByFingerprint(got)
	if !ok {
		return "", &UnknownKeyError{Got: got, Hosts: roster.Len()}
	}
	return host.Name, nil
}

func peerKey(state tls.ConnectionState) (Fingerprint, error) {
	if len(state.PeerCertificates) == 0 {
		return Fingerprint{}, errors.New("no certificate was shown; is the port an agent's?")
	}
	cert := state.PeerCertificates[0]
	if cert.PublicKeyAlgorithm != x509.Ed25519 {
		return Fingerprint{}, fmt.Errorf("a key of kind %s was shown, hosts have ed25519 keys; is the port an agent's?", cert.PublicKeyAlgorithm)
	}
	return FingerprintOf(cert.PublicKey)
}

// WrongKeyError says that what answered for a host is not that host.
type WrongKeyError struct {
	Host RosterHost // as the roster has it, with the key that was wanted
	Got  Fingerprint
}

func (e *WrongKeyError) Error() string {
	return fmt.Sprintf("identity: host %s at %s showed the key %s, the roster has %s: compare with 'suffrage identity show' on %s; if it was set up anew, correct its entry in every roster, otherwise another machine answers at its address",
		e.Host.Name, e.Host.AddrPort(), e.Got, e.Host.Fingerprint, e.Host.Name)
}

// UnknownKeyError says that a client is no host of the roster.
type UnknownKeyError struct {
	Got   Fingerprint
	Hosts int // in the roster
}

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("identity: peer showed the key %s, which none of the roster's %d hosts has: if it is a host of this fleet, put its entry ('suffrage identity show' there) in the roster of this host", e.Got, e.Hosts)
}

// RefusedError says that a host refused this host's key. TLS 1.3 tells a client so only at its first
// read, and without a reason; Explain adds what is known.
type RefusedError struct {
	Host   RosterHost
	Mine   Fingerprint
	Likely bool // deduced from a connection closed right after the handshake: net/http hides the alert
	err    error
}

func (e *RefusedError) Error() string {
	did := "refused"
	if e.Likely {
		did = "closed the connection at once, most likely since it does not know"
	}
	return fmt.Sprintf("identity: host %s at %s %s this host's key %s (%v): put this host's entry in the roster on %s",
		e.Host.Name, e.Host.AddrPort(), did, e.Mine, e.err, e.Host.Name)
}

func (e *RefusedError) Unwrap() error { return e.err }

// Explain turns the alert by which host refuses key into a RefusedError, and gives every other error
// back as it came. Call it on errors of dialling, reading, writing and of HTTP requests.
func Explain(err error, key *Key, host RosterHost) error {
	if err == nil {
		return nil
	}
	// Neither the alert's type (for TCP connections) nor the HTTP/2 client's error is exported.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && op.Err != nil &&
		slices.ContainsFunc([]string{"bad certificate", "certificate required", "unknown certificate"}, func(alert string) bool {
			return strings.HasSuffix(op.Err.Error(), alert)
		}) {
		return &RefusedError{Host: host, Mine: key.Fingerprint(), err: op}
	}
	if strings.HasSuffix(err.Error(), "http2: client conn could not be established") {
		return &RefusedError{Host: host, Mine: key.Fingerprint(), Likely: true, err: err}
	}
	return err
}
