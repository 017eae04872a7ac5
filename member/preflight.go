package member

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrNoDatastore means that the data directory is empty and nobody told the
// member what to join.
var ErrNoDatastore = errors.New("member: there is no datastore")

// HasDatastore reports whether an etcd datastore is in the data directory.
func HasDatastore(dir string) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "member"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("member: look for a datastore: %w", err)
	}
	return len(entries) > 0, nil
}

func hasWAL(dir string) bool {
	names, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	return len(names) > 0
}

// checkDatastore makes sure that starting does what was asked.
func checkDatastore(c Config, s Start) error {
	has, err := HasDatastore(c.DataDir)
	if err != nil {
		return err
	}
	switch {
	case has && !hasWAL(c.DataDir):
		return fmt.Errorf("member: %s holds part of a datastore but no write-ahead log: its first start was interrupted, or files were lost: move %s aside and keep it",
			c.DataDir, filepath.Join(c.DataDir, "member"))
	case !has && !s.Join:
		return fmt.Errorf("%w in %s, and a start never makes one: if the disk is not mounted, mount it; if this is one of the first members of a NEW cluster, run: suffrage cluster create",
			ErrNoDatastore, c.DataDir)
	case !has && c.InitialCluster[c.Name] == "":
		return fmt.Errorf("member: initial_cluster does not name %s: it must hold the names and peer URLs of all members", c.Name)
	case !has && c.InitialCluster[c.Name] != c.AdvertisePeer:
		return fmt.Errorf("member: initial_cluster gives %s the peer URL %s, advertise_peer is %s: they must be equal", c.Name, c.InitialCluster[c.Name], c.AdvertisePeer)
	}
	return nil
}

// CheckCertificate looks at the files of a checked configuration as a start does:
// ca, cert and key exist, belong together and to the addresses, at this time.
func CheckCertificate(c Config, now time.Time) error { return checkCertificate(c.filled(), now) }

// checkCertificate finds what etcd would only say in its log, or only when the
// first peer connects.
func checkCertificate(c Config, now time.Time) error {
	if c.Cert == "" {
		return nil
	}
	info, err := os.Stat(c.Key)
	if err != nil {
		return missing("key", err)
	}
	if m := info.Mode().Perm(); m&^0o600 != 0 {
		return fmt.Errorf("member: key %s has mode %04o, wider than 0600: if nobody else can have read it, run: chmod 0600 %s", c.Key, m, c.Key)
	}
	ca, err := os.ReadFile(c.CA)
	if err != nil {
		return missing("ca", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return fmt.Errorf("member: ca %s holds no certificate in PEM form", c.CA)
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return missing("cert", err)
	}
	if err != nil {
		return fmt.Errorf("member: cert %s and key %s: %w", c.Cert, c.Key, err)
	}
	leaf := pair.Leaf
	for _, u := range []string{c.AdvertisePeer, c.AdvertiseClient} {
		p, err := url.Parse(u)
		if err != nil {
			return fmt.Errorf("member: %w", err)
		}
		if err := leaf.VerifyHostname(p.Hostname()); err != nil {
			return fmt.Errorf("member: certificate-names: cert %s does not name %s, which %s advertises (%w): issue it again with that address", c.Cert, p.Hostname(), u, err)
		}
	}
	// An etcd peer is server and client by one certificate.
	for usage, what := range map[x509.ExtKeyUsage]string{x509.ExtKeyUsageServerAuth: "a server", x509.ExtKeyUsageClientAuth: "a client"} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: intermediates(pair), KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now})
		if err != nil {
			return fmt.Errorf("member: cert %s is not accepted as %s by ca %s: %w: issue it again, or compare the clock", c.Cert, what, c.CA, err)
		}
	}
	return nil
}

func intermediates(pair tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool
}

func missing(what string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("member: read %s: %w: run as the user that may read it", what, err)
	}
	return fmt.Errorf("member: read %s: %w: 'suffrage identity' makes these files", what, err)
}

// checkPorts tries every address. Something else may take one in between, and
// etcd then says so less clearly.
func checkPorts(c Config) error {
	for _, u := range c.urls() {
		if !u.bound {
			continue
		}
		p, err := url.Parse(u.value)
		if err != nil {
			return fmt.Errorf("member: %s: %w", u.key, err)
		}
		l, err := net.Listen("tcp", p.Host)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("member: %s %s is in use: another etcd or member runs here; find it with: ss -ltnp 'sport = :%s'", u.key, u.value, p.Port())
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return fmt.Errorf("member: %s %s: this host does not have that address: is the mesh or VPN up?", u.key, u.value)
		case errors.Is(err, syscall.EACCES):
			return fmt.Errorf("member: %s %s: this user may not listen there: use a port above 1023", u.key, u.value)
		case err != nil:
			return fmt.Errorf("member: %s %s: %w", u.key, u.value, err)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("member: %s %s: %w", u.key, u.value, err)
		}
	}
	return nil
}

// makeDataDir makes the directory that etcd wants, for its owner alone.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("member: make data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("member: data directory: %w", err)
	}
	if m := info.Mode().Perm(); m&0o077 != 0 {
		return fmt.Errorf("member: data directory %s has mode %04o, open to other users: run: chmod 0700 %s", dir, m, dir)
	}
	return nil
}

func initialCluster(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for name, u := range m {
		parts = append(parts, name+"="+u)
	}
	return strings.Join(parts, ",")
}
