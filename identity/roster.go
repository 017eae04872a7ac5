package identity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"slices"

	"suffrage/config"
)

const (
	// DefaultPort is the agent's TLS port where the roster names none.
	DefaultPort = 7400
	// MaxHosts is the largest roster.
	MaxHosts = 1000
)

// RosterHost is one host of the fleet, as every other host knows it.
type RosterHost struct {
	Name        string      `yaml:"name" json:"name"`               // a DNS label: 1 to 63 of a-z, 0-9 and -, not first or last
	Address     netip.Addr  `yaml:"address" json:"address"`         // the mesh address; where to look, never proof of who it is
	Port        uint16      `yaml:"port,omitempty" json:"port"`     // of the agent; 0 in a file means DefaultPort
	Fingerprint Fingerprint `yaml:"fingerprint" json:"fingerprint"` // of the host's key
}

// AddrPort is where the host's agent listens.
func (h RosterHost) AddrPort() netip.AddrPort { return netip.AddrPortFrom(h.Address, h.Port) }

// Entry is the host as a list item of a roster file, indented as under hosts:.
func (h RosterHost) Entry() string {
	port := ""
	if h.Port != 0 && h.Port != DefaultPort {
		port = fmt.Sprintf("    port: %d\n", h.Port)
	}
	return fmt.Sprintf("  - name: %q\n    address: %q\n%s    fingerprint: %s\n", h.Name, h.Address, port, h.Fingerprint)
}

// Validate gives a config.Problem per field that cannot stand in a roster.
func (h RosterHost) Validate() error {
	var errs []error
	bad := func(key, found, allowed string) {
		errs = append(errs, config.Problem{Key: key, Found: found, Allowed: allowed})
	}
	if !label.MatchString(h.Name) {
		bad("name", orNone(fmt.Sprintf("%q", clip(h.Name)), h.Name == ""), "a DNS label: 1 to 63 of a-z, 0-9 and - (not first or last)")
	}
	switch a := h.Address; {
	case !a.IsValid():
		bad("address", "no address", oneAddress)
	case a.Is4In6():
		bad("address", a.String(), oneAddress+"; write this one as "+a.Unmap().String())
	case a.Zone() != "":
		bad("address", a.String(), oneAddress+" without a zone, since a zone means something on one host only")
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		bad("address", a.String(), oneAddress+" that belongs to one host")
	}
	if h.Fingerprint.IsZero() {
		bad("fingerprint", "no fingerprint", "SHA256: and 43 characters, as 'suffrage identity show' prints it on the host")
	}
	return errors.Join(errs...)
}

const oneAddress = "one IP address of the mesh (100.64.0.1, fd7a::1)"

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func orNone(s string, none bool) string {
	if none {
		return "nothing"
	}
	return s
}

// Roster is the set of hosts, checked and immutable. A nil Roster holds nobody.
type Roster struct {
	hosts  []RosterHost // by name
	name   map[string]int
	addr   map[netip.Addr]int
	finger map[Fingerprint]int
}

type rosterFile struct {
	Hosts []RosterHost `yaml:"hosts"`
}

// Validate finds what is wrong with single hosts and what two hosts share.
func (f *rosterFile) Validate() error {
	var errs []error
	if n := len(f.Hosts); n == 0 || n > MaxHosts {
		return config.Problem{Key: "hosts", Found: fmt.Sprintf("%d hosts", n), Allowed: fmt.Sprintf("1 to %d hosts", MaxHosts)}
	}
	seen := map[any]int{}
	for i, h := range f.Hosts {
		key := fmt.Sprintf("hosts[%d]", i)
		errs = append(errs, config.Under(key, h.Validate()))
		for _, field := range []struct {
			name  string
			value any
			text  string
			empty bool
		}{
			{"name", h.Name, h.Name, h.Name == ""},
			{"address", h.Address.Unmap(), h.Address.String(), !h.Address.IsValid()},
			{"fingerprint", h.Fingerprint, h.Fingerprint.String(), h.Fingerprint.IsZero()},
		} {
			first, twice := seen[field.value]
			switch {
			case field.empty:
			case twice:
				errs = append(errs, config.Problem{Key: key + "." + field.name,
					Found:   fmt.Sprintf("%s, which hosts[%d] (%s) has too", clip(field.text), first, clip(f.Hosts[first].Name)),
					Allowed: "each " + field.name + " once"})
			default:
				seen[field.value] = i
			}
		}
	}
	return errors.Join(errs...)
}

// ParseRoster reads a roster; file is its name for errors, which are those of config.Decode.
func ParseRoster(file string, data []byte) (*Roster, error) {
	var f rosterFile
	if err := config.Decode(file, data, &f); err != nil {
		return nil, err
	}
	return build(f.Hosts), nil
}

// LoadRoster reads the roster file at path.
func LoadRoster(path string) (*Roster, error) {
	var f rosterFile
	if err := config.Load(path, &f); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("identity: roster: %w; 'suffrage identity init' prints the entry of its host", err)
		}
		return nil, err
	}
	return build(f.Hosts), nil
}

// NewRoster checks hosts as ParseRoster does.
func NewRoster(hosts []RosterHost) (*Roster, error) {
	f := rosterFile{Hosts: hosts}
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("identity: roster: %w", err)
	}
	return build(hosts), nil
}

func build(hosts []RosterHost) *Roster {
	r := &Roster{slices.Clone(hosts), map[string]int{}, map[netip.Addr]int{}, map[Fingerprint]int{}}
	slices.SortFunc(r.hosts, func(a, b RosterHost) int { return cmp.Compare(a.Name, b.Name) })
	for i := range r.hosts {
		h := &r.hosts[i]
		if h.Port == 0 {
			h.Port = DefaultPort
		}
		r.name[h.Name], r.addr[h.Address], r.finger[h.Fingerprint] = i, i, i
	}
	return r
}

// Hosts gives every host, ordered by name, in a slice of the caller's own.
func (r *Roster) Hosts() []RosterHost {
	if r == nil {
		return nil
	}
	return slices.Clone(r.hosts)
}

// Len is the number of hosts.
func (r *Roster) Len() int {
	if r == nil {
		return 0
	}
	return len(r.hosts)
}

// ByName finds a host by its name.
func (r *Roster) ByName(name string) (RosterHost, bool) {
	if r == nil {
		return RosterHost{}, false
	}
	i, ok := r.name[name]
	return r.at(i, ok)
}

// ByAddress finds a host by its mesh address: to label what was observed there, never to trust it.
func (r *Roster) ByAddress(a netip.Addr) (RosterHost, bool) {
	if r == nil {
		return RosterHost{}, false
	}
	i, ok := r.addr[a.Unmap()]
	return r.at(i, ok)
}

// ByFingerprint finds a host by its key.
func (r *Roster) ByFingerprint(f Fingerprint) (RosterHost, bool) {
	if r == nil {
		return RosterHost{}, false
	}
	i, ok := r.finger[f]
	return r.at(i, ok)
}

func (r *Roster) at(i int, ok bool) (RosterHost, bool) {
	if !ok {
		return RosterHost{}, false
	}
	return r.hosts[i], true
}
