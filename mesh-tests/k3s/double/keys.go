package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// shared are the files that all servers of a cluster have in common, below tls.
// The first server makes them, every other one gets them from the server that it
// joins.
var shared = []string{
	"server-ca.crt", "server-ca.key", "service.key",
	"etcd/server-ca.crt", "etcd/server-ca.key", "etcd/peer-ca.crt", "etcd/peer-ca.key",
}

// newShared makes what is missing of them.
func newShared(l layout) error {
	for _, ca := range []string{"server-ca", "etcd/server-ca", "etcd/peer-ca"} {
		if _, err := os.Stat(l.tls(ca + ".key")); err == nil {
			continue
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("k3s-%s@%d", strings.ReplaceAll(ca, "/", "-"), time.Now().Unix())
		cert := &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		if err := sign(cert, cert, key, key, l.tls(ca)); err != nil {
			return err
		}
	}
	if _, err := os.Stat(l.tls("service.key")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(key, l.tls("service.key"))
}

// newLeaves makes the certificates of this server, anew at each start: its
// address may be another one than before.
func newLeaves(l layout, o Options) error {
	dns := []string{"localhost", o.NodeName, "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, o.Loopback.AsSlice(), netip.MustParseAddr(o.NodeIP).AsSlice()}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, leaf := range []struct{ ca, file, name string }{
		{"server-ca", "serving-kube-apiserver", "kube-apiserver"},
		{"etcd/server-ca", "etcd/client", "etcd-client"},
		{"etcd/server-ca", "etcd/server-client", "etcd-server"},
		{"etcd/peer-ca", "etcd/peer-server-client", "etcd-peer"},
	} {
		caKey, caCert, err := readPair(l.tls(leaf.ca))
		if err != nil {
			return err
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		cert := &x509.Certificate{
			Subject: pkix.Name{CommonName: leaf.name}, DNSNames: dns, IPAddresses: addresses,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: both,
		}
		if err := sign(cert, caCert, key, caKey, l.tls(leaf.file)); err != nil {
			return err
		}
	}
	return nil
}

// sign writes file.crt and file.key.
func sign(cert, ca *x509.Certificate, key, caKey *ecdsa.PrivateKey, file string) error {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	cert.SerialNumber = serial
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(365*24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	return errors.Join(
		writeKey(key, file+".key"),
		write(file+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func writeKey(key *ecdsa.PrivateKey, file string) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return write(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func readPair(file string) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	keyText, keyErr := os.ReadFile(file + ".key")
	certText, err := os.ReadFile(file + ".crt")
	if err := errors.Join(keyErr, err); err != nil {
		return nil, nil, err
	}
	keyBlock, _ := pem.Decode(keyText)
	certBlock, _ := pem.Decode(certText)
	if keyBlock == nil || certBlock == nil {
		return nil, nil, fmt.Errorf("%s: not PEM", file)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s.key: %w", file, err)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s.crt: %w", file, err)
	}
	return key, cert, nil
}

// A token is a password, or K10HASH::server:PASSWORD with the hash of the
// authority that serves the API.
func password(token string) string {
	_, p, full := strings.Cut(token, "::")
	if !full {
		return token
	}
	_, p, _ = strings.Cut(p, ":")
	return p
}

func hashOf(token string) string {
	h, _, full := strings.Cut(token, "::")
	if !full || !strings.HasPrefix(h, "K10") {
		return ""
	}
	return h[len("K10"):]
}

func fullToken(ca []byte, password string) string {
	return "K10" + hash(ca) + "::server:" + password
}

func hash(ca []byte) string {
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}

// adminToken is the administrator's at every API server of the cluster: all know
// the password, so nothing more has to be exchanged. K3s has certificates
// instead, which do not pass through a proxy.
func adminToken(password string) string { return hash([]byte("admin of " + password)) }

// setToken keeps the token of the cluster: the one that was given, else the one
// that is there, else a new one. It gives its password.
func setToken(l layout, given string) (string, error) {
	p := password(given)
	if p == "" {
		old, err := os.ReadFile(l.token())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		p = password(strings.TrimSpace(string(old)))
	}
	if p == "" {
		p = rand.Text()
	}
	ca, err := os.ReadFile(filepath.Join(l.tls("server-ca.crt")))
	if err != nil {
		return "", err
	}
	return p, write(l.token(), []byte(fullToken(ca, p)+"\n"))
}
