package identity_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"suffrage/identity"
)

// printOf gives host number i a fingerprint.
func printOf(i int) identity.Fingerprint { return sha256.Sum256([]byte{byte(i >> 8), byte(i)}) }

func hostN(i int) identity.RosterHost {
	return identity.RosterHost{
		Name:        fmt.Sprintf("h%d", i),
		Address:     netip.AddrFrom4([4]byte{100, 64, byte(i >> 8), byte(i)}),
		Port:        identity.DefaultPort,
		Fingerprint: printOf(i),
	}
}

func TestParseRoster(t *testing.T) {
	in := fmt.Sprintf(`# two hosts
hosts:
- name: h2
  address: fd7a:0::2
  port: 7500
  fingerprint: %s
- name: h1
  address: 100.64.0.1
  fingerprint: %s
`, printOf(2), printOf(1))
	r, err := identity.ParseRoster("roster.yaml", []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	h1 := hostN(1)
	h2 := identity.RosterHost{Name: "h2", Address: netip.MustParseAddr("fd7a::2"), Port: 7500, Fingerprint: printOf(2)}
	if got := r.Hosts(); !slices.Equal(got, []identity.RosterHost{h1, h2}) {
		t.Errorf("hosts %v: want h1 with the default port, then h2", got)
	}
	byName, ok1 := r.ByName("h2")
	byAddress, ok2 := r.ByAddress(netip.MustParseAddr("::ffff:100.64.0.1"))
	byKey, ok3 := r.ByFingerprint(printOf(2))
	if !ok1 || !ok2 || !ok3 || byName != h2 || byAddress != h1 || byKey != h2 {
		t.Errorf("found %v %v %v", byName, byAddress, byKey)
	}
	if h, ok := r.ByName("h3"); ok {
		t.Errorf("found %v, which nobody entered", h)
	}
	var none *identity.Roster
	if _, ok := none.ByFingerprint(printOf(1)); ok || none.Len() != 0 {
		t.Error("a nil roster must hold nobody")
	}
}

func TestParseRosterRefuses(t *testing.T) {
	p := func(i int) string { return printOf(i).String() }
	const name = `allowed: a DNS label: 1 to 63 of a-z, 0-9 and - (not first or last)`
	const address = `allowed: one IP address of the mesh (100.64.0.1, fd7a::1)`
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"empty, which would lock everybody out", "", []string{`r.yaml: hosts: found 0 hosts; allowed: 1 to 1000 hosts`}},
		{"host, address and fingerprint twice", "hosts:\n- {name: h1, address: 100.64.0.1, fingerprint: " + p(1) + "}\n- name: h1\n  address: 100.64.0.1\n  fingerprint: " + p(1) + "\n", []string{
			`r.yaml:3: hosts[1].name: found h1, which hosts[0] (h1) has too; allowed: each name once`,
			`r.yaml:4: hosts[1].address: found 100.64.0.1, which hosts[0] (h1) has too; allowed: each address once`,
			`r.yaml:5: hosts[1].fingerprint: found ` + p(1) + `, which hosts[0] (h1) has too; allowed: each fingerprint once`}},
		{"one address written in two ways", "hosts:\n- {name: h1, address: \"fd7a::1\", fingerprint: " + p(1) + "}\n- {name: h2, address: \"fd7a:0:0::1\", fingerprint: " + p(2) + "}\n", []string{
			`r.yaml:3: hosts[1].address: found fd7a::1, which hosts[0] (h1) has too; allowed: each address once`}},
		{"fields left out", "hosts:\n- name: h1\n", []string{
			`r.yaml:2: hosts[0].address: found no address; ` + address,
			`r.yaml:2: hosts[0].fingerprint: found no fingerprint; allowed: SHA256: and 43 characters, as 'suffrage identity show' prints it on the host`}},
		{"names that DNS does not take", "hosts:\n- {name: H1, address: 100.64.0.1, fingerprint: " + p(1) + "}\n- {name: a.b, address: 100.64.0.2, fingerprint: " + p(2) + "}\n- {name: -a, address: 100.64.0.3, fingerprint: " + p(3) + "}\n- {name: '', address: 100.64.0.4, fingerprint: " + p(4) + "}\n- {name: " + strings.Repeat("a", 64) + ", address: 100.64.0.5, fingerprint: " + p(5) + "}\n", []string{
			`r.yaml:2: hosts[0].name: found "H1"; ` + name,
			`r.yaml:3: hosts[1].name: found "a.b"; ` + name,
			`r.yaml:4: hosts[2].name: found "-a"; ` + name,
			`r.yaml:5: hosts[3].name: found nothing; ` + name,
			`r.yaml:6: hosts[4].name: found "` + strings.Repeat("a", 64) + `"; ` + name}},
		{"addresses that are not one host's", "hosts:\n- {name: h1, address: 0.0.0.0, fingerprint: " + p(1) + "}\n- {name: h2, address: \"::ffff:100.64.0.2\", fingerprint: " + p(2) + "}\n- {name: h3, address: \"fe80::1%eth0\", fingerprint: " + p(3) + "}\n", []string{
			`r.yaml:2: hosts[0].address: found 0.0.0.0; ` + address + ` that belongs to one host`,
			`r.yaml:3: hosts[1].address: found ::ffff:100.64.0.2; ` + address + `; write this one as 100.64.0.2`,
			`r.yaml:4: hosts[2].address: found fe80::1%eth0; ` + address + ` without a zone, since a zone means something on one host only`}},
		{"an address with a prefix, a short fingerprint, a large port", "hosts:\n- {name: h1, address: 100.64.0.1/10, fingerprint: SHA256:abc, port: 70000}\n", []string{
			`r.yaml:2: hosts[0].address: ParseAddr("100.64.0.1/10"): unexpected character (at "/10")`,
			`r.yaml:2: hosts[0].fingerprint: identity: "SHA256:abc" is no fingerprint: want SHA256: and 43 base64 characters, as 'suffrage identity show' prints it`,
			`r.yaml:2: hosts[0].port: found 70000; allowed: a whole number from 0 to 65535`}},
		{"unknown key", "hosts:\n- {name: h1, adress: 100.64.0.1}\n", []string{
			`r.yaml:2: hosts[0].adress: unknown key; did you mean "address"? known keys here: name, address, port, fingerprint`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := identity.ParseRoster("r.yaml", []byte(tt.in))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRosterSize(t *testing.T) {
	var b strings.Builder
	b.WriteString("hosts:\n")
	for i := range identity.MaxHosts {
		b.WriteString(hostN(i).Entry())
	}
	if r, err := identity.ParseRoster("r.yaml", []byte(b.String())); err != nil || r.Len() != identity.MaxHosts {
		t.Fatalf("%d hosts, %v", r.Len(), err)
	}
	b.WriteString(hostN(identity.MaxHosts).Entry())
	_, err := identity.ParseRoster("r.yaml", []byte(b.String()))
	if want := "r.yaml:1: hosts: found 1001 hosts; allowed: 1 to 1000 hosts"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLoadRosterAbsent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roster.yaml")
	_, err := identity.LoadRoster(path)
	want := "identity: roster: config: read " + path + ": file does not exist: create it, or name the right file; 'suffrage identity init' prints the entry of its host"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Whatever the order of the entries and the writing of the addresses, the roster is the same, and
// every host is found by each of its three names.
func TestRosterIgnoresOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(1, 5000), 1, 20, rapid.ID).Draw(t, "hosts")
		text := func(order []int) string {
			s := "hosts:\n"
			for _, i := range order {
				h := hostN(i)
				if i%3 == 0 {
					h.Port = uint16(i)
				}
				s += h.Entry()
			}
			return s
		}
		a, err := identity.ParseRoster("a", []byte(text(numbers)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := identity.ParseRoster("b", []byte(text(rapid.Permutation(numbers).Draw(t, "order"))))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Hosts(), b.Hosts()) {
			t.Fatalf("%v differs from %v", a.Hosts(), b.Hosts())
		}
		for _, h := range a.Hosts() {
			x, _ := a.ByName(h.Name)
			y, _ := a.ByAddress(h.Address)
			z, _ := a.ByFingerprint(h.Fingerprint)
			if x != h || y != h || z != h {
				t.Fatalf("%v was found as %v, %v, %v", h, x, y, z)
			}
		}
	})
}

func TestNewRosterChecks(t *testing.T) {
	_, err := identity.NewRoster([]identity.RosterHost{hostN(1), hostN(1)})
	if err == nil || !strings.HasPrefix(err.Error(), "identity: roster: hosts[1].name: found h1, which hosts[0]") {
		t.Errorf("got %v", err)
	}
	if _, err := identity.NewRoster(nil); err == nil {
		t.Error("an empty roster was taken")
	}
}

func FuzzParseRoster(f *testing.F) {
	f.Add([]byte("hosts:\n" + hostN(1).Entry() + hostN(2).Entry()))
	f.Add([]byte("hosts:\n" + hostN(1).Entry() + hostN(1).Entry()))
	f.Add([]byte("hosts: [{name: h1, address: ::1, port: 1, fingerprint: }]"))
	f.Add([]byte("hosts: {name: h1}"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := identity.ParseRoster("r.yaml", data)
		if err != nil {
			return
		}
		// What is read can be written and read again.
		text := "hosts:\n"
		for _, h := range r.Hosts() {
			text += h.Entry()
		}
		again, err := identity.ParseRoster("again", []byte(text))
		if err != nil || !slices.Equal(again.Hosts(), r.Hosts()) {
			t.Errorf("%q was written as %q (%v)", data, text, errors.Unwrap(err))
		}
	})
}
