package demo

import (
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"suffrage/identity"
)

func TestFleetsDoNotShareANumber(t *testing.T) {
	a, err := NewFleet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewFleet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if a.Number == b.Number {
		t.Errorf("two demos at once both have 127.0.%d.0/24", a.Number)
	}
	a.Close()
	b.Close()
}

func TestFleetFilesAreThoseOfRealHosts(t *testing.T) {
	f := &Fleet{Dir: filepath.Join(t.TempDir(), "fleet"), Hosts: hosts(7, filepath.Join(t.TempDir(), "fleet"))}
	for i := range f.Hosts {
		f.Hosts[i].Dir = filepath.Join(f.Dir, f.Hosts[i].Name)
	}
	configure := func(_ *Fleet, h Host) (any, error) { return map[string]string{"host": h.Name}, nil }
	if err := f.Write(configure); err != nil {
		t.Fatal(err)
	}
	authority, err := identity.LoadAuthority(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range f.Hosts {
		key, err := identity.LoadKey(h.Path(KeyFile))
		if err != nil {
			t.Fatal(err)
		}
		roster, err := identity.LoadRoster(h.Path(RosterFile))
		if err != nil {
			t.Fatal(err)
		}
		entry, ok := roster.ByName(h.Name)
		if !ok || entry.Fingerprint != key.Fingerprint() || entry.Address != h.Mesh || entry.Port != AgentPort {
			t.Errorf("%s: the roster has %+v", h.Name, entry)
		}
		cert, err := identity.LoadCertificate(h.Path(CertFile))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AddCert(authority.Certificate())
		for _, name := range []string{h.Mesh.String(), "127.0.0.1", h.Name} {
			if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
				t.Errorf("%s: its certificate is not good for %s: %v", h.Name, name, err)
			}
		}
		if b, err := os.ReadFile(h.Path(ConfigFile)); err != nil || string(b) != "host: "+h.Name+"\n" {
			t.Errorf("%s: configuration %q, %v", h.Name, b, err)
		}
	}
	if err := f.Write(configure); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second fleet in the same directory: %v; it would run on another cluster's files", err)
	}
	// Nothing but certificates, roster and configuration may be read by others.
	filepath.WalkDir(f.Dir, func(path string, d fs.DirEntry, _ error) error {
		if info, err := d.Info(); err == nil && strings.HasSuffix(path, ".key") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
}
