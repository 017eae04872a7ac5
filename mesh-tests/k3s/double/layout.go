package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// backups are kept of datastores that were moved away; K3s: maxBackupRetention.
const backups = 5

// layout is where things are below a data directory, as K3s has them.
type layout string

func (l layout) server(parts ...string) string {
	return filepath.Join(append([]string{string(l), "server"}, parts...)...)
}
func (l layout) tls(parts ...string) string {
	return l.server(append([]string{"tls"}, parts...)...)
}
func (l layout) agent(name string) string { return filepath.Join(string(l), "agent", name) }
func (l layout) db() string               { return l.server("db", "etcd") }
func (l layout) nameFile() string         { return filepath.Join(l.db(), "name") }
func (l layout) tombstone() string        { return filepath.Join(l.db(), "tombstone") }
func (l layout) etcdConfig() string       { return filepath.Join(l.db(), "config") }
func (l layout) token() string            { return l.server("token") }
func (l layout) kubeconfig() string       { return l.server("cred", "admin.kubeconfig") }

// initialized: a member has run here. Then the datastore wins over whatever the
// command line says of a cluster.
func (l layout) initialized() (bool, error) {
	s, err := os.Stat(filepath.Join(l.db(), "member", "wal"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && s.IsDir(), err
}

// buried moves a datastore with a tombstone away and says where; "" without one.
func (l layout) buried(now time.Time) (string, error) {
	if _, err := os.Stat(l.tombstone()); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return "", err
	}
	prefix := l.db() + "-backup-"
	old, err := filepath.Glob(prefix + "*")
	if err != nil {
		return "", err
	}
	slices.Sort(old) // by time, since the numbers are of one length
	for len(old) > backups {
		if err := os.RemoveAll(old[0]); err != nil {
			return "", err
		}
		old = old[1:]
	}
	to := fmt.Sprintf("%s%d", prefix, now.Unix())
	return to, os.Rename(l.db(), to)
}

// memberName is what the name file says; a new name is made and kept where there
// is none.
func (l layout) memberName(node string) (string, error) {
	content, err := os.ReadFile(l.nameFile())
	if err == nil {
		return string(content), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var some [4]byte
	if _, err := rand.Read(some[:]); err != nil {
		return "", err
	}
	name := node + "-" + hex.EncodeToString(some[:])
	return name, write(l.nameFile(), []byte(name))
}

// nodeOf is the node's name in a member's.
func nodeOf(member string) string {
	if i := strings.LastIndex(member, "-"); i > 1 {
		return member[:i]
	}
	return member
}

// write writes a file that only its owner reads, at once, and its directory.
func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	part := file + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return err
	}
	return os.Rename(part, file)
}
