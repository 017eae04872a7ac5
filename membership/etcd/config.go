package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"suffrage/config"
	"suffrage/fitness"
)

// maxPEM bounds a key, a certificate or a bundle of them, in bytes.
const maxPEM = 1 << 20

// Config says how to reach an etcd cluster.
type Config struct {
	// Endpoints are client URLs of voters. One that answers is enough: the
	// others are found in the member list.
	Endpoints []string `yaml:"endpoints"`
	// CA is the file with the authorities that signed the members' server
	// certificates. Empty: the system's.
	CA string `yaml:"ca"`
	// Cert and Key are the files of the client certificate; both or neither.
	// They are read again for every observation, so a renewed one is used at once.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// Timeout is for everything that is asked of one member in one observation,
	// 100ms to 1m. Too low and a slow member looks dead; too high and a round
	// with a dead member outlasts the sample period. A whole observation takes
	// at most twice as long.
	Timeout fitness.Duration `yaml:"timeout"`
}

// DefaultConfig has no endpoints: there is no address that is right everywhere.
func DefaultConfig() Config { return Config{Timeout: fitness.Duration(2 * time.Second)} }

// Validate gives every problem with its key.
func (c Config) Validate() error {
	var errs []error
	if len(c.Endpoints) == 0 {
		errs = append(errs, config.Problem{Key: "endpoints", Found: "none", Allowed: "at least one client URL of a voter, such as https://10.0.0.1:2379"})
	}
	if len(c.Endpoints) > maxMembers {
		errs = append(errs, config.Problem{Key: "endpoints", Found: fmt.Sprintf("%d", len(c.Endpoints)), Allowed: fmt.Sprintf("at most %d", maxMembers)})
	}
	for i, e := range c.Endpoints {
		if _, err := parseEndpoint(e); err != nil {
			errs = append(errs, config.Problem{Key: fmt.Sprintf("endpoints[%d]", i), Found: fmt.Sprintf("%q", e), Allowed: "https://address:port, or http://address:port without TLS"})
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		errs = append(errs, config.Problem{Key: "cert", Found: "only one of cert and key", Allowed: "both, or neither"})
	}
	if t := c.Timeout.Std(); t < 100*time.Millisecond || t > time.Minute {
		errs = append(errs, config.Problem{Key: "timeout", Found: c.Timeout.String(), Allowed: "100ms to 1m"})
	}
	return errors.Join(errs...)
}

func parseEndpoint(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is not an etcd client URL: write https://address:port", s)
	}
	return u, nil
}

// TLS reads the certificate files. Each error names the file and what is wrong.
func (c Config) TLS() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if c.CA != "" {
		data, err := readPEM(c.CA)
		if err != nil {
			return nil, fmt.Errorf("etcd: read CA: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("etcd: read CA: %s holds no certificate: it must be PEM, beginning with -----BEGIN CERTIFICATE-----", c.CA)
		}
	}
	if c.Cert != "" {
		cert, err := readPEM(c.Cert)
		if err != nil {
			return nil, fmt.Errorf("etcd: read client certificate: %w", err)
		}
		key, err := readPEM(c.Key)
		if err != nil {
			return nil, fmt.Errorf("etcd: read client key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("etcd: client certificate %s with key %s: %w", c.Cert, c.Key, err)
		}
		// Always, not only to servers that say they accept its authority: their
		// refusal then says that it is the wrong one, not that there was none.
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return t, nil
}

func readPEM(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPEM {
		return nil, fmt.Errorf("%s is larger than %d KiB", path, maxPEM>>10)
	}
	return data, nil
}

// Client is a long-lived client for marks, the record and the election. It
// moves between the endpoints by itself; observations never use it.
func (c Config) Client() (*clientv3.Client, error) {
	t, err := c.TLS()
	if err != nil {
		return nil, err
	}
	cl, err := clientv3.New(clientv3.Config{
		Endpoints:   c.Endpoints,
		TLS:         t,
		DialTimeout: c.Timeout.Std(),
		// Without these a client stays with a frozen member for minutes.
		DialKeepAliveTime:    2 * c.Timeout.Std(),
		DialKeepAliveTimeout: c.Timeout.Std(),
		// A write may take etcd's own 5 s + 2·E. Callers bound their calls; the
		// client's logger would only repeat what they are told.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: client for %s: %w", strings.Join(c.Endpoints, ", "), err)
	}
	cl.KV = reads{cl.KV, c.Timeout.Std() / 2}
	return cl, nil
}
