package standby

import (
	"fmt"
	"path"
	"strings"

	"suffrage/deploy"
)

// Names of the units, and where they say that everything is written.
const (
	agentUnit      = "suffrage-agent.service"
	memberUnit     = "suffrage-member.service"
	controllerUnit = "suffrage-controller.service"

	shippedData   = "/var/lib/suffrage"
	shippedConfig = "/etc/suffrage/suffrage.yaml"
	program       = "/usr/local/bin/suffrage"
)

// Where units and their drop-ins are laid down. Units are below /usr/local, so that
// systemctl mask can do its work (it cannot where the unit lies in /etc).
const (
	unitDir   = "/usr/local/lib/systemd/system"
	dropInDir = "/etc/systemd/system"
	rulesFile = "/etc/polkit-1/rules.d/50-suffrage.rules"
)

// shipped is a file that Prepare lays down. Of is the unit that it is part of;
// none for polkit's rules.
type shipped struct{ of, path, content string }

// shipped are all files of this host, those of one unit together.
func (h Host) shipped() []shipped {
	ours := []string{agentUnit, memberUnit, controllerUnit}
	if h.K3s != nil {
		ours = []string{agentUnit, controllerUnit}
	}
	var out []shipped
	for _, unit := range ours {
		out = append(out, shipped{unit, path.Join(unitDir, unit), carried(unit)})
		if h.Data != shippedData {
			out = append(out, shipped{unit, path.Join(dropInDir, unit+".d", "suffrage-data.conf"), h.elsewhere(unit)})
		}
	}
	if h.K3s == nil {
		return append(out, shipped{"", rulesFile, carried("suffrage.rules")})
	}
	put := strings.NewReplacer(shippedData, h.Data, "/var/lib/rancher/k3s", h.K3s.DataDir, "/etc/rancher/k3s", path.Dir(h.K3s.ConfigDir))
	for _, d := range []struct{ unit, from string }{
		{agentUnit, agentUnit}, {controllerUnit, controllerUnit}, {h.serverName(), "k3s.service"}, {h.K3s.AgentUnit, "k3s-agent.service"},
	} {
		if d.unit != "" {
			out = append(out, shipped{d.unit, path.Join(dropInDir, d.unit+".d", "suffrage.conf"), put.Replace(carried("k3s/" + d.from + ".d/suffrage.conf"))})
		}
	}
	return out
}

// elsewhere is what has to be said where data is another directory than the units
// name.
func (h Host) elsewhere(unit string) string {
	text := "# data is another directory than the unit names.\n"
	if unit == memberUnit {
		text += fmt.Sprintf("[Unit]\nAssertPathExists=!%s/fence.json\nRequiresMountsFor=%s\n", h.Data, h.Data)
	}
	return text + fmt.Sprintf("[Service]\nReadWritePaths=%s\n", h.Data)
}

// carried is a file of deploy/systemd.
func carried(name string) string {
	b, err := deploy.Systemd.ReadFile("systemd/" + name)
	if err != nil {
		panic("standby: " + err.Error()) // a name of ours
	}
	return string(b)
}
