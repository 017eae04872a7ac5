package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"suffrage/identity"
	"suffrage/membership/etcd"
)

// TLS are the files of this host's side. They are read for each connection, so
// renewed ones are used at once.
type TLS struct {
	CA, Cert, Key string
	// Client is the certificate of `suffrage identity datastore`, which may not be
	// there: then only the fleet's own may come in.
	Client string
}

// inward is what a client on this host meets; without files there is no TLS. A
// client that is not let in hears little of why, so refused is told.
func (f TLS) inward(refused func(error)) credentials.TransportCredentials {
	if f.Cert == "" {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.server(refused) },
	})
}

func (f TLS) server(refused func(error)) (*tls.Config, error) {
	pair, fleet, err := f.files()
	if err != nil {
		refused(err)
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert,
		// A resumed session would outlive a client's certificate that was replaced.
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			err := f.admit(s.PeerCertificates, fleet, time.Now())
			if err != nil {
				refused(err)
			}
			return err
		},
	}, nil
}

func (f TLS) files() (pair tls.Certificate, fleet *x509.CertPool, err error) {
	if pair, err = tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
		return pair, nil, fmt.Errorf("endpoint: certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return pair, nil, fmt.Errorf("endpoint: read CA: %w", err)
	}
	fleet = x509.NewCertPool()
	if !fleet.AppendCertsFromPEM(text) {
		return pair, nil, fmt.Errorf("endpoint: read CA: %s holds no certificate", f.CA)
	}
	return pair, fleet, nil
}

// admit lets in the one key that datastore.crt names, and the fleet's.
func (f TLS) admit(chain []*x509.Certificate, fleet *x509.CertPool, now time.Time) error {
	own, err := identity.LoadCertificate(f.Client)
	if err == nil {
		err = identity.CheckDatastore(chain[0], own, now)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("endpoint: there is no certificate for a datastore's client: suffrage identity datastore")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, bad := chain[0].Verify(x509.VerifyOptions{Roots: fleet, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if bad == nil {
		return nil
	}
	return errors.Join(err, bad)
}

// outward is this host as a client of voters. Its files are read for each
// connection.
type outward struct{ etcd etcd.Config }

func (o outward) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	t, err := o.etcd.TLS()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(t).ClientHandshake(ctx, authority, c)
}

func (o outward) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("endpoint: it is no server's")
}

func (o outward) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}
func (o outward) Clone() credentials.TransportCredentials { return o }
func (o outward) OverrideServerName(string) error         { return nil }
