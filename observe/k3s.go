package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"suffrage/membership/etcd"
)

// K3sDataDir is K3s's default --data-dir.
const K3sDataDir = "/var/lib/rancher/k3s"

// K3s is how to reach the embedded etcd of the K3s server on this host.
func K3s(dataDir string) (etcd.Config, error) {
	c := etcd.DefaultConfig()
	dir := filepath.Join(dataDir, "server", "tls", "etcd")
	c.Endpoints = []string{"https://127.0.0.1:2379"}
	c.CA, c.Cert, c.Key = filepath.Join(dir, "server-ca.crt"), filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	for _, f := range []string{c.CA, c.Cert, c.Key} {
		switch _, err := os.Stat(f); {
		case errors.Is(err, fs.ErrPermission):
			return c, fmt.Errorf("observe: %w: K3s's files belong to root: run this with sudo", err)
		case errors.Is(err, fs.ErrNotExist):
			return c, noK3s(dataDir, f)
		case err != nil:
			return c, fmt.Errorf("observe: %w", err)
		}
	}
	return c, nil
}

func noK3s(dataDir, file string) error {
	exists := func(parts ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{dataDir}, parts...)...))
		return err == nil
	}
	switch {
	case !exists():
		return fmt.Errorf("observe: there is no %s: this host runs no K3s, or with another --data-dir: name it with --k3s-data-dir", dataDir)
	case exists("server", "db", "state.db"):
		return fmt.Errorf("observe: K3s keeps its data in SQLite here (%s), not in etcd: there are no votes to look at", filepath.Join(dataDir, "server", "db", "state.db"))
	case !exists("server"):
		return fmt.Errorf("observe: %s is a K3s agent's: run this on a K3s server", dataDir)
	}
	return fmt.Errorf("observe: there is no %s: this K3s server has no embedded etcd (it may use --datastore-endpoint): name its etcd with --endpoints", file)
}
