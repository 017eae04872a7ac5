package standby

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"suffrage/membership/host"
)

// unit is one that a standby has.
type unit struct {
	host.Systemd
	// boots: a boot has to start it, if the fence lets it.
	boots bool
	// guarded: the fence says whether it starts.
	guarded bool
}

// all are this host's units.
func (h Host) all() []unit {
	return append([]unit{
		{Systemd: host.Systemd{Name: agentUnit, Data: h.Data}, boots: true},
		{Systemd: host.Systemd{Name: controllerUnit, Data: h.Data}},
	}, h.servers()...)
}

// servers are those that the fence guards.
func (h Host) servers() []unit {
	out := []unit{{Systemd: h.server(), boots: true, guarded: true}}
	if h.K3s != nil && h.K3s.AgentUnit != "" {
		out = append(out, unit{Systemd: host.Systemd{Name: h.K3s.AgentUnit, Data: h.Data, Behind: true}, boots: true, guarded: true})
	}
	return out
}

func (h Host) units(ctx context.Context) (out []Check) {
	for _, u := range h.all() {
		out = append(out, h.unit(ctx, u, true))
	}
	return out
}

// serverUnits looks at what an order to start would meet, whoever wrote it.
func (h Host) serverUnits(ctx context.Context) (out []Check) {
	for _, u := range h.servers() {
		out = append(out, h.unit(ctx, u, false))
	}
	return out
}

// unit looks at one unit; with files also whether it is as shipped.
func (h Host) unit(ctx context.Context, u unit, files bool) Check {
	const name = "unit"
	f, err := h.Systemd.File(ctx, u.Systemd)
	if err != nil {
		return unknown(name, err).of(u.Name)
	}
	var mine []shipped
	for _, s := range h.shipped() {
		if s.of == u.Name {
			mine = append(mine, s)
		}
	}
	ours := len(mine) > 0 && strings.HasPrefix(mine[0].path, unitDir)
	c := func() Check {
		switch {
		case f.Loaded == "not-found" && ours:
			return missing(name, "not installed", prepares)
		case f.Loaded == "not-found" && h.K3s != nil:
			return missing(name, "not installed", "install K3s with both of its units, and do not start it; or correct the setting that names it (agent.unit, k3s.agent_unit)")
		case f.Loaded == "not-found":
			return missing(name, "not installed", "install it, or let agent.unit be "+memberUnit)
		case f.Loaded == "masked":
			return wrong(name, "masked, so nothing can start it", "systemctl unmask "+u.Name)
		case f.Loaded != "loaded":
			return wrong(name, "systemd could not load it: "+f.Loaded, "systemctl status "+u.Name)
		}
		if files {
			for _, s := range mine {
				if c := h.asShipped(s); c.State != OK {
					return c
				}
			}
			if want := path.Join(unitDir, u.Name); ours && f.Fragment != want {
				return wrong(name, fmt.Sprintf("systemd takes %s, which goes before %s", f.Fragment, want), "move that file away, then: systemctl daemon-reload")
			}
		}
		line, unfit := errors.AsType[*host.CommandLineError](f.Unsafe)
		switch {
		case f.Stale:
			return wrong(name, "its files are newer than what systemd has loaded", "systemctl daemon-reload")
		case u.guarded && unfit:
			return wrong(name, "its command line has "+line.Found, line.Help)
		case u.guarded && f.Unsafe != nil:
			return wrong(name, f.Unsafe.Error(), prepares)
		case u.boots && f.Enabled != "enabled":
			return missing(name, "not enabled ("+f.Enabled+"), so that no boot starts it", prepares)
		}
		return ok(name, strings.Join(append([]string{"as it has to be"}, h.more(f)...), "; "))
	}()
	return c.of(u.Name)
}

// more are the drop-ins that are not ours: they count, and are the owner's.
func (h Host) more(f host.UnitFile) []string {
	var theirs []string
	for _, d := range f.DropIns {
		if !strings.HasPrefix(path.Base(d), "suffrage") {
			theirs = append(theirs, path.Base(d))
		}
	}
	if len(theirs) == 0 {
		return nil
	}
	return []string{"with drop-ins of your own: " + strings.Join(theirs, ", ")}
}

func (h Host) asShipped(s shipped) Check {
	name := "unit"
	if s.of == "" {
		name = "orders"
	}
	got, err := os.ReadFile(h.at(s.path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(name, s.path+" is not there", prepares)
	case err != nil:
		return unknown(name, err)
	case string(got) != s.content:
		return wrong(name, s.path+" is another than this version ships", prepares+"; your own changes go into drop-ins")
	}
	return ok(name, s.path+" is as shipped")
}

// orders looks at whether this host's agent may run the server.
func (h Host) orders(ctx context.Context) []Check {
	const name = "orders"
	switch {
	case h.Unit == "":
		return []Check{missing(name, "agent.unit is not set, so the agent takes no orders", "agent: {unit: "+h.serverName()+"} in "+h.Config+", then: systemctl restart suffrage-agent")}
	case !h.systemd():
		return []Check{ok(name, "through the socket "+h.Unit)}
	case h.K3s != nil:
		return []Check{ok(name, "the agent runs as root, and gives them for "+h.Unit)}
	}
	if _, err := os.Stat(h.at(filepath.Dir(rulesFile))); errors.Is(err, fs.ErrNotExist) {
		return []Check{missing(name, "polkit is not installed, so the agent may not start "+h.Unit, "apt-get install --no-install-recommends polkitd; then: "+prepares)}
	}
	all := h.shipped()
	c := h.asShipped(all[len(all)-1])
	if c.State == OK && h.Unit != memberUnit {
		return []Check{wrong(name, rulesFile+" is about "+memberUnit+", agent.unit is "+h.Unit, "rules of your own, or agent.unit: "+memberUnit)}
	}
	return []Check{c}
}
