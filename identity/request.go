package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Request asks an Authority for a certificate, as a PKCS #10 request in PEM. It holds the name, the
// address and the public key, nothing secret, and is signed to show that the asker has the key.
func Request(key *Key, name string, address netip.Addr) ([]byte, error) {
	if err := (RosterHost{Name: name, Address: address, Fingerprint: key.Fingerprint()}).Validate(); err != nil {
		return nil, fmt.Errorf("identity: request: %w", err)
	}
	template := &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: name},
		IPAddresses: []net.IP{address.AsSlice()},
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key.private)
	if err != nil {
		return nil, fmt.Errorf("identity: request for host %s: %w", name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// ErrRequest is why a text is no request at all.
var ErrRequest = errors.New("identity: not a certificate request")

func parseRequest(data []byte) (*x509.CertificateRequest, error) {
	if len(data) > maxPEM {
		return nil, fmt.Errorf("%w: larger than %d KiB", ErrRequest, maxPEM>>10)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%w: want one PEM block of type CERTIFICATE REQUEST, as 'suffrage identity request' prints it", ErrRequest)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: its signature does not belong to its key, so it was altered on the way: %w", ErrRequest, err)
	}
	if _, ok := request.PublicKey.(ed25519.PublicKey); !ok {
		return nil, fmt.Errorf("%w: its key is of kind %s, a host's is ed25519", ErrRequest, request.PublicKeyAlgorithm)
	}
	return request, nil
}

// RequestRefusedError says that a request does not agree with the roster.
type RequestRefusedError struct {
	Host   string // as the request has it
	Field  string // "name", "fingerprint" or "address"
	Wanted string // by the roster; empty where the name is not in it
	Got    string
}

func (e *RequestRefusedError) Error() string {
	if e.Field == "name" {
		return fmt.Sprintf("identity: sign: the request is for host %q, which is not in the roster: add it, or ask again with the right name", clip(e.Host))
	}
	return fmt.Sprintf("identity: sign: the request for host %s has the %s %s, the roster has %s: correct the roster, or ask again on %s ('suffrage identity request')",
		e.Host, e.Field, clip(e.Got), e.Wanted, e.Host)
}

// admit finds the roster's host for a request and compares the two.
func admit(request *x509.CertificateRequest, roster *Roster) (RosterHost, error) {
	name := request.Subject.CommonName
	host, ok := roster.ByName(name)
	if !ok {
		return RosterHost{}, &RequestRefusedError{Host: name, Field: "name", Got: name}
	}
	got, err := FingerprintOf(request.PublicKey)
	if err != nil {
		return RosterHost{}, err
	}
	if got != host.Fingerprint {
		return RosterHost{}, &RequestRefusedError{name, "fingerprint", host.Fingerprint.String(), got.String()}
	}
	if len(request.IPAddresses) != 1 || !request.IPAddresses[0].Equal(host.Address.AsSlice()) {
		return RosterHost{}, &RequestRefusedError{name, "address", host.Address.String(), fmt.Sprint(request.IPAddresses)}
	}
	return host, nil
}
