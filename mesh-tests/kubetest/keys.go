package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"time"
)

func token(user string) string { return user + "-token" }

// keys writes what the server's flags name: a certificate that is its own
// authority, the key of service accounts, and a token for each user.
func (s *Server) keys(users []string) error {
	key, certErr := s.key("server.key")
	account, err := s.key("sa.key")
	if err := errors.Join(certErr, err); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&account.PublicKey)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubetest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{s.address.Addr().AsSlice()}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return err
	}
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	var tokens strings.Builder
	for _, u := range users {
		group := ""
		if u == Admin {
			group = ",system:masters"
		}
		fmt.Fprintf(&tokens, "%s,%s,%[2]s%s\n", token(u), u, group)
	}
	return errors.Join(
		os.WriteFile(s.file("server.crt"), s.ca, 0o600),
		os.WriteFile(s.file("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600),
		os.WriteFile(s.file("tokens.csv"), []byte(tokens.String()), 0o600))
}

func (s *Server) key(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(s.file(name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
