package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// RenewBefore is how long before its end a certificate counts as expiring.
const RenewBefore = 30 * 24 * time.Hour

// Codes of CertificateProblem.
const (
	CertificateNames    = "certificate-names"    // a name or address that peers will check is missing
	CertificateKey      = "certificate-key"      // it belongs to another key than the roster has
	CertificateUsage    = "certificate-usage"    // it is not for both server and client
	CertificateIssuer   = "certificate-issuer"   // the authority did not sign it
	CertificateExpired  = "certificate-expired"  // its end is past
	CertificateEarly    = "certificate-early"    // its start is yet to come, or the clock is slow
	CertificateExpiring = "certificate-expiring" // less than RenewBefore is left; it still works
)

// CertificateProblem is one reason why etcd's peers would refuse a host's certificate, or soon will.
type CertificateProblem struct {
	Code    string   `json:"code"`
	Host    string   `json:"host"`
	Detail  string   `json:"detail"`
	Missing []string `json:"missing,omitempty"` // names and addresses, of CertificateNames
	Lift    string   `json:"lift"`              // what would lift it
}

func (p CertificateProblem) Error() string {
	return fmt.Sprintf("%s: host %s: %s: %s", p.Code, p.Host, p.Detail, p.Lift)
}

// CheckCertificate compares an etcd certificate with what the roster says of its host, at the time
// now. It checks the issuer only where authority is not nil. The result is empty where all is well.
func CheckCertificate(cert *x509.Certificate, host RosterHost, authority *x509.Certificate, now time.Time) []CertificateProblem {
	renew := fmt.Sprintf("on %s: suffrage identity request; then sign it, install it as host.crt (etcd reads it anew by itself)", host.Name)
	var out []CertificateProblem
	add := func(code, detail string) {
		out = append(out, CertificateProblem{Code: code, Host: host.Name, Detail: detail, Lift: renew})
	}
	if fp, err := FingerprintOf(cert.PublicKey); err != nil || fp != host.Fingerprint {
		add(CertificateKey, fmt.Sprintf("the certificate is for the key %s, the roster has %s", fp, host.Fingerprint))
	}
	if missing := MissingNames(cert, host); len(missing) > 0 {
		add(CertificateNames, "the certificate lacks "+strings.Join(missing, ", "))
		out[len(out)-1].Missing = missing
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if !slices.Contains(cert.ExtKeyUsage, usage) && !slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny) {
			add(CertificateUsage, "the certificate must be for both server and client use: an etcd peer is both")
			break
		}
	}
	if authority != nil && cert.CheckSignatureFrom(authority) != nil {
		add(CertificateIssuer, fmt.Sprintf("the certificate was not signed by the authority at hand (%s)", authority.Subject.CommonName))
	}
	switch {
	case now.Before(cert.NotBefore):
		add(CertificateEarly, "the certificate is good only from "+cert.NotBefore.UTC().Format(time.RFC3339))
		out[len(out)-1].Lift = fmt.Sprintf("set the clock of %s, or wait", host.Name)
	case !now.Before(cert.NotAfter):
		add(CertificateExpired, "the certificate was good until "+cert.NotAfter.UTC().Format(time.RFC3339))
	case cert.NotAfter.Sub(now) < RenewBefore:
		add(CertificateExpiring, "the certificate is good only until "+cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return out
}

// MissingNames lists what the host's certificate must name and does not: its name, localhost,
// 127.0.0.1 and its mesh address. A peer that is dialled by a name or address that its certificate
// lacks is refused by etcd (etcd-io/etcd#8206, #12567).
func MissingNames(cert *x509.Certificate, host RosterHost) []string {
	var missing []string
	names, addresses := requiredNames(host)
	for _, name := range names {
		if cert.VerifyHostname(name) != nil {
			missing = append(missing, name)
		}
	}
	for _, a := range addresses {
		if !slices.ContainsFunc(cert.IPAddresses, a.Equal) {
			missing = append(missing, a.String())
		}
	}
	return missing
}

func requiredNames(host RosterHost) (names []string, addresses []net.IP) {
	names = []string{host.Name, "localhost"}
	local := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addresses = []net.IP{local.AsSlice()}
	if host.Address != local {
		addresses = append(addresses, host.Address.AsSlice())
	}
	return names, addresses
}

// LoadCertificate reads the file's first certificate.
func LoadCertificate(path string) (*x509.Certificate, error) {
	data, err := readPEMFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("identity: read certificate %s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("identity: read certificate: %w", err)
	}
	cert, err := ParseCertificate(data)
	if err != nil {
		return nil, fmt.Errorf("identity: read certificate %s: %w", path, err)
	}
	return cert, nil
}

// ParseCertificate reads the first certificate of a PEM text. A chain may follow; the authority signs
// without intermediates, so it is not looked at.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(bytes.TrimSpace(data))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("want PEM that starts with a block of type CERTIFICATE")
	}
	return x509.ParseCertificate(block.Bytes)
}

func encodeCertificate(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}
