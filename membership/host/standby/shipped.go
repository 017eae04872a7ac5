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

// decisions is the folder of data that is the controller's.
const decisions = "decisions"

// folders are those of data in which a member has no business: its unit bars it from
// them, as far as they are there when it starts.
var folders = []string{"agent", decisions, "snapshots"}

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
		if text := h.elsewhere(unit); text != "" {
			out = append(out, shipped{unit, path.Join(dropInDir, unit+".d", "suffrage-data.conf"), text})
		}
	}
	if h.K3s == nil {
		return append(out, shipped{"", rulesFile, carried("suffrage.rules")})
	}
	put := strings.NewReplacer(shippedData, h.Data, "/var/lib/rancher/k3s", h.K3s.DataDir, "/etc/rancher/k3s/config.yaml.d", h.K3s.ConfigDir)
	for _, d := range []struct{ unit, from string }{
		{agentUnit, agentUnit}, {controllerUnit, controllerUnit}, {h.serverName(), "k3s.service"}, {h.K3s.AgentUnit, "k3s-agent.service"},
	} {
		if d.unit != "" {
			out = append(out, shipped{d.unit, path.Join(dropInDir, d.unit+".d", "suffrage.conf"), put.Replace(carried("k3s/" + d.from + ".d/suffrage.conf"))})
		}
	}
	return out
}

// elsewhere is what has to be said where data or the records are in another place
// than the units name, and nothing else.
func (h Host) elsewhere(unit string) string {
	switch {
	case unit == controllerUnit && (h.Data != shippedData || h.Records != shippedData+"/"+decisions):
		return fmt.Sprintf("# data, or controller.records, is another directory than the unit names.\n[Service]\n"+
			"StateDirectory=\nTemporaryFileSystem=\nTemporaryFileSystem=%s:ro\nBindPaths=\nBindPaths=%s\n", h.Data, h.Records)
	case unit == controllerUnit || h.Data == shippedData:
		return ""
	}
	text, barred := "# data is another directory than the unit names.\n", []string{decisions}
	if unit == memberUnit {
		text += fmt.Sprintf("[Unit]\nAssertPathExists=!%s/fence.json\nRequiresMountsFor=%s\n", h.Data, h.Data)
		barred = folders
	}
	text += fmt.Sprintf("[Service]\nReadWritePaths=%s\nInaccessiblePaths=", h.Data)
	for i, name := range barred {
		text += strings.Repeat(" ", min(i, 1)) + "-" + path.Join(h.Data, name)
	}
	return text + "\n"
}

// carried is a file of deploy/systemd.
func carried(name string) string {
	b, err := deploy.Systemd.ReadFile("systemd/" + name)
	if err != nil {
		panic("standby: " + err.Error()) // a name of ours
	}
	return string(b)
}
