package standby

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/member"
	"suffrage/membership/host"
)

// Host is this host as its settings have it.
type Host struct {
	// Root is where its files are below; "" is /.
	Root string
	// Entry is its entry in the roster.
	Entry identity.RosterHost
	// Config is the settings file, and Problems what is wrong with it, with the key
	// and with the roster, one text each.
	Config   string
	Problems []string
	// Software is the version of this program.
	Software string
	// Dir has the key and the roster; everything is written in Data.
	Dir, Data string
	// Records is where the controller keeps its own, in Data or elsewhere.
	Records string
	// Datastore is etcd's own directory, and Quota its largest size in bytes.
	Datastore string
	Quota     int64
	// Unit is agent.unit: a service of systemd, the path of a socket, or nothing.
	Unit string
	// Member is the checked section of that name; unused where K3s is.
	Member member.Config
	// Founder: initial_cluster names this host.
	Founder bool
	// K3s is nil where a member of Suffrage runs.
	K3s *K3s
	// Systemd is this host's.
	Systemd Systemd
	// Socket tells whether the server runs where Unit is a socket.
	Socket host.Unit
	// Report is what this host's agent tells. Nil: there is nobody to ask.
	Report func(context.Context) (fitness.Report, error)
	// Identity tells of which cluster and member a datastore is.
	Identity func(dataDir string) (cluster, member string)
	// Now is the time, and Synchronised whether the kernel's clock is set by
	// anything.
	Now          func() time.Time
	Synchronised func() (bool, error)
}

// K3s is where K3s is on this host.
type K3s struct {
	// AgentUnit runs K3s's agent while the host is no server; may be empty.
	AgentUnit string
	// DataDir is K3s's data directory, and ConfigDir where it reads settings beside
	// the file config.yaml in the directory above.
	DataDir, ConfigDir string
}

// Systemd is as much of it as is needed here.
type Systemd interface {
	// File looks at a unit; one that does not exist is no error.
	File(ctx context.Context, u host.Systemd) (host.UnitFile, error)
	// Reload has systemd read the files again.
	Reload(ctx context.Context) error
	// Enable has a unit started at boot, or no more.
	Enable(ctx context.Context, unit string, on bool) error
	// Stop ends a unit's processes.
	Stop(ctx context.Context, unit string) error
}

// Bus is the Systemd at an address of the system bus; "" is this machine's.
type Bus string

// File is Systemd's.
func (b Bus) File(ctx context.Context, u host.Systemd) (host.UnitFile, error) {
	u.Bus = string(b)
	return u.File(ctx)
}

// Reload is Systemd's.
func (b Bus) Reload(ctx context.Context) error {
	return host.Systemd{Name: agentUnit, Bus: string(b)}.Reload(ctx)
}

// Enable is Systemd's.
func (b Bus) Enable(ctx context.Context, unit string, on bool) error {
	return host.Systemd{Name: unit, Bus: string(b)}.Enable(ctx, on)
}

// Stop is Systemd's.
func (b Bus) Stop(ctx context.Context, unit string) error {
	return host.Systemd{Name: unit, Bus: string(b)}.Stop(ctx)
}

// at is where a path of the host is.
func (h Host) at(path string) string {
	if path == "" || h.Root == "" {
		return path
	}
	return filepath.Join(h.Root, path)
}

// standing is what this host has of any cluster.
func (h Host) standing() (host.Standing, error) {
	return host.StandingOf(h.at(h.Data), h.at(h.Datastore), h.Identity)
}

// systemd reports whether a unit of systemd runs the server.
func (h Host) systemd() bool { return strings.HasSuffix(h.Unit, ".service") }

// server is the unit that would run the server.
func (h Host) server() host.Systemd {
	u := host.Systemd{Name: h.serverName(), Data: h.Data}
	if h.K3s != nil {
		u.K3s, u.DataDir, u.Config = true, h.K3s.DataDir, h.K3s.ConfigDir
	}
	return u
}

func (h Host) serverName() string {
	switch {
	case h.systemd():
		return h.Unit
	case h.K3s != nil:
		return "k3s.service"
	}
	return memberUnit
}

// runs tells whether the server runs, and as which process where that is known.
func (h Host) runs(ctx context.Context) (bool, uint32, error) {
	if h.Socket != nil {
		s, err := h.Socket.State(ctx)
		return s.Running, 0, err
	}
	f, err := h.Systemd.File(ctx, h.server())
	return f.Running, f.PID, err
}
