package identity_test

import (
	"testing"

	"suffrage/identity"
)

// Whatever is sent to be signed, only the roster's own hosts get a certificate.
func FuzzParseRequest(f *testing.F) {
	a, _ := newAuthority(f)
	k := newKey(f)
	r := fleetOf(f, at("h1", "100.64.0.1", k))
	f.Add(request(f, k, "h1", "100.64.0.1"))
	f.Add(request(f, newKey(f), "h2", "fd7a::1"))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		certPEM, err := a.Sign(data, r, identity.MinValidity)
		if err != nil {
			return
		}
		cert, err := identity.ParseCertificate(certPEM)
		if err != nil {
			t.Fatal(err)
		}
		if fp, _ := identity.FingerprintOf(cert.PublicKey); fp != k.Fingerprint() || cert.Subject.CommonName != "h1" {
			t.Errorf("%q: signed for %s, key %s", data, cert.Subject, fp)
		}
	})
}
