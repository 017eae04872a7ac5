package standby

import (
	"context"
	"errors"
	"io/fs"
	"strings"
)

// State is how a Check ended.
type State string

const (
	OK      State = "ok"
	Missing State = "missing" // it is not there
	Wrong   State = "wrong"   // it is there, and not as it has to be
	Unknown State = "unknown" // it could not be looked at
)

// Check is one thing that a standby needs. Names are stable.
type Check struct {
	Name string `json:"name"`
	// Subject is which of several: a unit, a port.
	Subject string `json:"subject,omitempty"`
	State   State  `json:"state"`
	// Found is what is so, and Help what would help where that is not enough.
	Found string `json:"found"`
	Help  string `json:"help,omitempty"`
}

func (c Check) String() string {
	what := c.Name
	if c.Subject != "" {
		what += " " + c.Subject
	}
	return what + " is " + string(c.State) + ": " + c.Found
}

// Ready reports whether nothing is amiss.
func Ready(checks []Check) bool {
	for _, c := range checks {
		if c.State != OK {
			return false
		}
	}
	return len(checks) > 0
}

func ok(name, found string) Check            { return Check{Name: name, State: OK, Found: found} }
func missing(name, found, help string) Check { return Check{name, "", Missing, found, help} }
func wrong(name, found, help string) Check   { return Check{name, "", Wrong, found, help} }

// unknown is a check that could not be made.
func unknown(name string, err error) Check {
	c := Check{Name: name, State: Unknown, Found: err.Error()}
	if errors.Is(err, fs.ErrPermission) {
		c.Help = "ask as root: sudo suffrage standby check"
	}
	return c
}

func (c Check) of(subject string) Check {
	c.Subject = subject
	return c
}

// errSettings is why what the settings and the roster say cannot be looked at.
var errSettings = errors.New("the settings, the key or the roster are wrong")

// unread gives an unknown check where the roster does not tell of this host.
func (h Host) unread(name string) (Check, bool) {
	return unknown(name, errSettings), !h.Entry.Address.IsValid()
}

// prepares is the help with what Prepare does.
const prepares = "sudo suffrage standby prepare"

// Check looks at everything that a standby needs.
func (h Host) Check(ctx context.Context) []Check {
	out := []Check{h.settings()}
	if h.K3s == nil {
		out = append(out, h.program(), h.user())
	} else {
		out = append(out, h.version(ctx), h.k3sSettings(ctx))
	}
	out = append(out, h.namespaces())
	out = append(out, h.directories()...)
	out = append(out, h.units(ctx)...)
	out = append(out, h.orders(ctx)...)
	out = append(out, h.fence(), h.certificates(), h.datastore(ctx))
	out = append(out, h.ports(ctx)...)
	return append(out, h.clock(ctx), h.disk(ctx))
}

// Lacks are the reasons why this host could not be made a voter that nobody but
// itself can see: what its agent tells. It takes milliseconds. Clocks, disks and
// versions are measured and compared by whoever decides.
func (h Host) Lacks(ctx context.Context) []string {
	var checks []Check
	if strings.HasSuffix(h.Unit, ".service") {
		checks = append(checks, h.serverUnits(ctx)...)
		if h.K3s != nil {
			checks = append(checks, h.fence(), h.k3sSettings(ctx))
		} else {
			checks = append(checks, h.namespaces())
		}
	}
	checks = append(append(checks, h.certificates()), h.ports(ctx)...)
	var out []string
	for _, c := range checks {
		if c.State != OK {
			out = append(out, c.String())
		}
	}
	return out
}
