package identity

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"
)

// Datastore issues the certificate that a client of this host's datastore endpoint
// shows, as PEM: for a client and nothing else, signed by its own key. No authority
// stands behind it, so etcd and the agents refuse it; the endpoint knows its key
// from the file. A validity of 0 is DefaultValidity.
func Datastore(key *Key, host string, validity time.Duration) ([]byte, error) {
	if validity == 0 {
		validity = DefaultValidity
	}
	if validity < MinValidity || validity > authorityValidity {
		return nil, fmt.Errorf("identity: issue for the datastore: validity %s: allowed: %s to %s", validity, MinValidity, authorityValidity)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "datastore client of " + host},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.private.Public(), key.private)
	if err != nil {
		return nil, fmt.Errorf("identity: issue for the datastore of %s: %w", host, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("identity: issue for the datastore of %s: %w", host, err)
	}
	return encodeCertificate(cert), nil
}

// ErrDatastoreClient is why a client of the datastore endpoint is not let in.
var ErrDatastoreClient = errors.New("identity: not the datastore's client")

// CheckDatastore compares what a client shows, of which TLS has proven that it has
// the key, with the certificate on this host. The keys have to be the same; so a
// client goes on with its own copy while the file is renewed, until that one ends.
func CheckDatastore(shown, own *x509.Certificate, now time.Time) error {
	a, err := FingerprintOf(shown.PublicKey)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDatastoreClient, err)
	}
	b, err := FingerprintOf(own.PublicKey)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDatastoreClient, err)
	case a != b:
		return fmt.Errorf("%w: it showed the key %s, datastore.crt has %s", ErrDatastoreClient, a, b)
	case now.Before(shown.NotBefore) || !now.Before(shown.NotAfter):
		return fmt.Errorf("%w: its certificate is good from %s to %s: suffrage identity datastore renews it", ErrDatastoreClient, shown.NotBefore.UTC().Format(time.RFC3339), shown.NotAfter.UTC().Format(time.RFC3339))
	}
	// Who has the key can sign what the owner never issued; an end that is far away
	// would gain nothing over the file's own.
	if now.After(own.NotAfter) {
		return fmt.Errorf("%w: datastore.crt was good until %s: suffrage identity datastore renews it", ErrDatastoreClient, own.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}
