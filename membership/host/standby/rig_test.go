package standby

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/member"
)

// rig is a host in a directory, set up as docs/install.md does but for what
// Prepare lays down.
type rig struct {
	t *testing.T
	Host
	systemd   *files
	authority *identity.Authority
	roster    *identity.Roster
	key       *identity.Key
}

func newRig(t *testing.T) *rig {
	t.Helper()
	root := t.TempDir()
	r := &rig{t: t, systemd: &files{root: root, running: map[string]bool{}}}
	for _, d := range []string{"etc/suffrage", "etc/systemd/system", "etc/polkit-1/rules.d", "usr/local/bin", "usr/local/lib", "var/lib", "proc/self/net"} {
		r.must(os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	var err error
	r.key, err = identity.GenerateKey()
	r.must(err)
	r.must(r.key.Save(filepath.Join(root, "etc/suffrage/host.key")))
	h4 := identity.RosterHost{Name: "h4", Address: netip.MustParseAddr("100.64.0.4"), Port: identity.DefaultPort, Fingerprint: r.key.Fingerprint()}
	r.roster, err = identity.NewRoster([]identity.RosterHost{h4})
	r.must(err)
	r.authority, err = identity.NewAuthority(filepath.Join(root, "etc/suffrage"))
	r.must(err)
	r.Host = Host{
		Root: root, Entry: h4, Config: shippedConfig, Software: software(t), Dir: "/etc/suffrage", Data: shippedData, Records: shippedData + "/decisions", Datastore: shippedData + "/etcd",
		Quota: 1 << 10, Unit: memberUnit, Systemd: r.systemd,
		Identity: func(string) (string, string) { return "", "" }, Now: time.Now, Synchronised: func() (bool, error) { return true, nil },
	}
	m := member.DefaultConfig()
	m.Name, m.DataDir, m.ListenPeer, m.ListenClient = "h4", r.Datastore, "https://100.64.0.4:2380", "https://100.64.0.4:2379"
	m.CA, m.Cert, m.Key = "/etc/suffrage/ca.crt", "/etc/suffrage/host.crt", "/etc/suffrage/host.key"
	r.Member = m
	r.sign(h4.Address, 0)
	self, err := os.Executable()
	r.must(err)
	r.must(os.Symlink(self, filepath.Join(root, program)))
	r.put("/etc/passwd", fmt.Sprintf("root:x:0:0::/root:/bin/sh\nsuffrage:x:%d:%d::/:/bin/sh\n", os.Getuid(), os.Getgid()))
	r.put("/proc/self/net/tcp", "  sl\n")
	r.put("/proc/sys/user/max_user_namespaces", "96000\n")
	r.must(r.systemd.Reload(t.Context()))
	return r
}

// software is what the test's own binary calls itself.
func software(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return builtAs(t, self)
}

// sign issues the host's certificate for an address.
func (r *rig) sign(address netip.Addr, validity time.Duration) {
	r.t.Helper()
	h := r.Entry
	h.Address = address
	roster, err := identity.NewRoster([]identity.RosterHost{h})
	r.must(err)
	csr, err := identity.Request(r.key, h.Name, address)
	r.must(err)
	pem, err := r.authority.Sign(csr, roster, validity)
	r.must(err)
	r.put("/etc/suffrage/host.crt", string(pem))
}

func (r *rig) put(path, text string) {
	r.t.Helper()
	r.must(os.MkdirAll(filepath.Dir(r.at(path)), 0o755))
	r.must(os.WriteFile(r.at(path), []byte(text), 0o644))
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// amiss are the checks that are not ok, by name and subject.
func (r *rig) amiss() map[string]Check {
	out := map[string]Check{}
	for _, c := range r.Check(r.t.Context()) {
		if c.State != OK {
			out[c.Name+" "+c.Subject] = c
		}
	}
	return out
}

// clocks is what an agent tells that found its peers' clocks away by these.
func clocks(off ...float64) func(context.Context) (fitness.Report, error) {
	return func(context.Context) (fitness.Report, error) {
		var r fitness.Report
		for i, v := range off {
			r.Series = append(r.Series, fitness.Series{Signal: fitness.Clock, Peer: fmt.Sprintf("h%d", i+1),
				Samples: []fitness.Sample{{Value: v, State: fitness.Measured}}})
		}
		return r, nil
	}
}
