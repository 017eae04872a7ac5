package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"suffrage/identity"
)

// Names of the files in a host's directory.
const (
	ConfigFile = "suffrage.yaml"
	KeyFile    = "host.key"
	RosterFile = "roster.yaml"
	CAFile     = "ca.crt"
	CertFile   = "host.crt"
	DataDir    = "data"
)

// Write makes every host's directory: key, roster, certificates and the
// configuration that configure gives, written as YAML. The directory of the
// fleet must be missing or empty.
func (f *Fleet) Write(configure func(*Fleet, Host) (any, error)) error {
	if err := emptyDir(f.Dir); err != nil {
		return err
	}
	keys := map[string]*identity.Key{}
	var entries []identity.RosterHost
	for _, h := range f.Hosts {
		if err := os.MkdirAll(h.Path(DataDir), 0o700); err != nil {
			return fmt.Errorf("demo: host %s: %w", h.Name, err)
		}
		key, err := identity.GenerateKey()
		if err != nil {
			return err
		}
		if err := key.Save(h.Path(KeyFile)); err != nil {
			return err
		}
		keys[h.Name] = key
		entries = append(entries, identity.RosterHost{Name: h.Name, Address: h.Mesh, Fingerprint: key.Fingerprint()})
	}
	roster, err := identity.NewRoster(entries)
	if err != nil {
		return err
	}
	authority, err := identity.NewAuthority(f.Dir)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(f.Dir, "ca.crt"))
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for _, h := range f.Hosts {
		settings, err := configure(f, h)
		if err != nil {
			return err
		}
		if err := h.write(keys[h.Name], roster, authority, ca, settings); err != nil {
			return err
		}
	}
	return nil
}

// write makes the public files of one host, as its owner would carry them there.
func (h Host) write(key *identity.Key, roster *identity.Roster, authority *identity.Authority, ca []byte, settings any) error {
	request, err := identity.Request(key, h.Name, h.Mesh)
	if err != nil {
		return err
	}
	cert, err := authority.Sign(request, roster, 0)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(settings)
	if err != nil {
		return fmt.Errorf("demo: configuration of %s: %w", h.Name, err)
	}
	var entries strings.Builder
	entries.WriteString("hosts:\n")
	for _, r := range roster.Hosts() {
		entries.WriteString(r.Entry())
	}
	var failed error
	for name, data := range map[string][]byte{
		CertFile: cert, CAFile: ca, RosterFile: []byte(entries.String()), ConfigFile: text,
	} {
		failed = errors.Join(failed, os.WriteFile(h.Path(name), data, 0o644))
	}
	if failed != nil {
		return fmt.Errorf("demo: host %s: %w", h.Name, failed)
	}
	return nil
}

// emptyDir makes the directory, or accepts one with nothing in it: what lies in
// another may be somebody's, or a cluster of an earlier demo.
func emptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if len(there) > 0 {
		return fmt.Errorf("demo: %s is not empty (%s): name a new directory", dir, there[0].Name())
	}
	return nil
}
