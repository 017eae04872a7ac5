package systemd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/mesh-tests/pages"
)

// pagesSettings are those of a fleet that has all that the pages speak of. A cooldown is
// the stall time and a window.
const pagesSettings = swapSettings + `  stall_time: 30s
  page: {listen: "ADDRESS:7403"}
endpoint:
  listen: 127.0.0.1:2379
`

// words is what a page's words mean on a booted host: it has no sudo, and who types is
// root.
const words = `set -e -o pipefail
sudo() {
  if [ "$1" != -u ]; then "$@"; return; fi
  local user=$2
  shift 2
  runuser -u "$user" -- "$@"
}
`

// typing types a command of a page on a host, in a folder of the release.
func (m *machine) typing(folder, command string) (string, error) {
	out, err := m.try("bash", "-c", words+"cd "+folder+"\n"+command)
	m.t.Logf("%s: %s", m.name, command)
	return out, err
}

// TestPages types on booted hosts what pages show for them: in the order of each page,
// on one fleet, from its installation to the recovery of a lost quorum and back to three
// voters.
func TestPages(t *testing.T) {
	f := newFleet(t, []string{"h1", "h2", "h3"}, []string{"h4"}, pagesSettings)
	f.installed()
	f.endpoint()
	f.folders()
	f.runbooks()
	f.curl()
	f.recovery()
	f.k3sRecovery()
}

// of gives the commands of a page that are typed here.
func (f *fleet) of(page string) (out []string) {
	f.t.Helper()
	for _, c := range pages.Of(f.t, pages.Hosts, page) {
		out = append(out, c.Text)
	}
	return out
}

// typed types a command until it does what it should: units come up, elections end.
func (f *fleet) typed(host, folder, command string) (out string) {
	f.t.Helper()
	var err error
	for deadline := time.Now().Add(swapPatience); ; time.Sleep(200 * time.Millisecond) {
		if out, err = f.hosts[host].typing(folder, command); err == nil {
			return out
		}
		// That nothing is in the journal is an answer.
		if strings.HasPrefix(command, "journalctl ") && strings.Contains(out, "-- No entries --") && !strings.Contains(command, "decision changed") {
			return out
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%v: %s", err, out)
		}
	}
}

// source is where a host has the release.
const source = "/opt/suffrage"

// installed goes on where newFleet, which puts the files in place, has ended.
func (f *fleet) installed() {
	done := installing(f.t)
	for _, command := range f.of("docs/install.md") {
		hosts := []string{"h1"}
		switch {
		case slices.Contains(done, command):
			continue
		case strings.Contains(command, "suffrage-agent"):
			hosts = f.names
		case strings.Contains(command, "--now suffrage-member"):
			hosts = f.voters
		case strings.Contains(command, " standby "):
			hosts = []string{"h1", "h4"}
		case strings.Contains(command, "decision changed"):
			hosts = []string{f.leading()}
		}
		for _, h := range hosts {
			f.typed(h, source, command)
		}
	}
}

// leading is the host whose controller leads: it alone writes down decisions.
func (f *fleet) leading() (host string) {
	f.t.Helper()
	eventually(f.t, "a controller leads", func() bool {
		for _, v := range f.voters {
			if _, err := f.hosts[v].try("journalctl", "-q", "-u", "suffrage-controller", "-g", "decision changed"); err == nil {
				host = v
			}
		}
		return host != ""
	})
	return host
}

// endpoint sets up the address of etcd on h1.
func (f *fleet) endpoint() {
	for _, command := range f.of("docs/endpoint.md") {
		if strings.HasPrefix(command, "suffrage identity") {
			command = "sudo -u suffrage " + command // "as the user that owns host.key"
		}
		f.typed("h1", source, command)
	}
	eventually(f.t, "the endpoint of h1 leads to a voter", func() bool {
		said, err := f.hosts["h1"].as("explain", "h1")
		return err == nil && regexp.MustCompile(`reads to \S*h[123]`).MatchString(said)
	})
}

// folders are pages by which files are put in place.
func (f *fleet) folders() {
	h1 := f.hosts["h1"]
	h1.run("mkdir", "-p", "/etc/prometheus")
	h1.run("cp", source+"/deploy/prometheus/suffrage.rules.yml", "/etc/prometheus/")
	for page, folder := range map[string]string{"docs/observability.md": source, "docs/kubernetes.md": source,
		"deploy/examples/three-plus-two/README.md": source + "/deploy/examples/three-plus-two"} {
		for _, command := range f.of(page) {
			f.typed("h1", folder, command)
		}
	}
	for what, command := range map[string]string{
		"the links of the rules lead elsewhere": `! grep -q file:/// /etc/prometheus/suffrage.rules.yml && test $(grep -c https://wiki.example/suffrage/runbooks/ /etc/prometheus/suffrage.rules.yml) = $(ls /usr/local/share/doc/suffrage/runbooks | wc -l)`,
		"kubectl's plugin is the program":       "runuser -u suffrage -- kubectl-suffrage status",
		"the agent comes behind tailscaled":     "systemctl show -P After suffrage-agent | grep -q tailscaled.service",
	} {
		f.t.Log(what)
		f.typed("h1", "/", command)
	}
}

// k3sUnit stands in for a K3s server, which is not here: what pages type about it is its
// unit, its files and its settings.
const k3sUnit = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

// runbooks are typed on h1, or on the host whose controller leads, each command once.
func (f *fleet) runbooks() {
	f.each(f.voters, func(m *machine) error {
		m.put("/etc/systemd/system/k3s.service", k3sUnit)
		_, err := m.try("sh", "-c", "mkdir -p /etc/rancher/k3s && echo 'etcd-arg: [heartbeat-interval=500]' > /etc/rancher/k3s/config.yaml && systemctl daemon-reload && systemctl enable -q --now k3s")
		return err
	})
	done := map[string]bool{}
	for _, page := range pages.All(f.t) {
		if !strings.HasPrefix(page, "docs/runbooks/") {
			continue
		}
		for _, c := range pages.Commands(f.t, page) {
			if pages.By(c) == pages.Hosts && !done[c.Text] {
				done[c.Text] = true
				host := "h1"
				if strings.Contains(c.Text, "decision changed") {
					host = f.leading()
				}
				f.typed(host, "/", c.Text)
			}
		}
	}
}

// curl asks the page of h1 for its JSON from here, with a key of the roster.
func (f *fleet) curl() {
	dir := f.t.TempDir()
	for _, file := range []string{"host.crt", "host.key"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(f.hosts["h1"].run("cat", "/etc/suffrage/"+file)), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, command := range f.of("docs/page.md") {
		if _, err := exec.LookPath("curl"); err != nil {
			f.t.Logf("SKIPPED: there is no curl here: %s", command)
			continue
		}
		command = strings.Replace(command, "100.64.0.1", f.hosts["h1"].address, 1)
		for deadline := time.Now().Add(swapPatience); ; time.Sleep(200 * time.Millisecond) {
			c := exec.Command("bash", "-c", strings.Replace(command, "curl ", "curl -sS --noproxy '*' ", 1))
			c.Dir = dir
			said, err := c.CombinedOutput()
			if err == nil && strings.Contains(string(said), `"quorum"`) {
				break
			}
			if time.Now().After(deadline) {
				f.t.Fatalf("%s: %v: %.2000s", command, err, said)
			}
		}
		if out, err := exec.Command("curl", "-sk", "--noproxy", "*", fmt.Sprintf("https://%s:7403/v1/fleet", f.hosts["h1"].address)).Output(); err == nil {
			f.t.Errorf("without a key of the roster it says %.200s", out)
		}
	}
}

// recovery has every member stopped for good, comes back with h3 alone, and gives h1 and
// h2 their votes again. h4, of which nobody has said anything, gets none.
func (f *fleet) recovery() {
	id, newest := "", ""
	for _, command := range f.of("docs/recovery.md") {
		hosts := []string{"h3"}
		switch {
		case strings.HasPrefix(command, "sudo systemctl disable"):
			hosts = f.voters
		case strings.HasPrefix(command, "sudo mv "), command == "sudo systemctl enable suffrage-member", strings.HasSuffix(command, " standby check"):
			hosts = []string{"h1", "h2"}
		case strings.Contains(command, "cluster reset"):
			id = f.reset(command)
			continue
		case strings.Contains(command, " mode active"), strings.Contains(command, " target "):
			command += " --yes" // there is no terminal
		}
		command = strings.NewReplacer("accept ID", "accept "+id, "--drill FILE", "--drill "+newest).Replace(command)
		said := ""
		for _, h := range hosts {
			said = f.typed(h, "/", command)
		}
		switch {
		case strings.HasSuffix(command, " snapshot save"):
			newest, _, _ = strings.Cut(said, "\n")
		case strings.HasSuffix(command, " status") && !strings.Contains(said, "1 voters of 3"):
			f.t.Errorf("h3 alone has a vote, and status says\n%s", said)
		}
	}
	f.votes("h1", "h2", "h3")
}

// reset types the command of docs/recovery.md twice, as the page does: without a
// confirmation it only tells.
func (f *fleet) reset(command string) (cluster string) {
	f.t.Helper()
	_, err := f.hosts["h3"].typing("/", command)
	m := regexp.MustCompile(`add --confirm "([^"]+)"`).FindStringSubmatch(fmt.Sprint(err))
	if m == nil {
		f.t.Fatalf("without a confirmation it says %v", err)
	}
	said := f.typed("h3", "/", fmt.Sprintf("%s --confirm '%s' 2>&1", command, m[1]))
	if m = regexp.MustCompile(`new cluster ([0-9a-f]+) `).FindStringSubmatch(said); m == nil {
		f.t.Fatalf("it names no cluster: %s", said)
	}
	return m[1]
}

// votes waits until just these vote.
func (f *fleet) votes(want ...string) {
	f.t.Helper()
	eventually(f.t, strings.Join(want, ", ")+" vote", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), lasting)
		defer cancel()
		list, err := f.etcd.MemberList(ctx)
		if err != nil {
			return false
		}
		var voters []string
		for _, m := range list.Members {
			if !m.IsLearner {
				voters = append(voters, m.Name)
			}
		}
		slices.Sort(voters)
		return slices.Equal(voters, want)
	})
}

// k3sRecovery types what docs/k3s-recovery.md has beside K3s's own two commands: h3 is
// the server that is chosen.
func (f *fleet) k3sRecovery() {
	const db, settings = "/var/lib/rancher/k3s/server/db", "/etc/rancher/k3s/config.yaml.d"
	f.each(f.voters, func(m *machine) error {
		m.run("mkdir", "-p", db+"/etcd", settings)
		m.put(settings+"/99-suffrage.yaml", "server: https://100.64.0.1:6443\n")
		m.put(settings+"/99-suffrage-grade.yaml", "disable-apiserver: true\n")
		return nil
	})
	id, newest, begun := "", "", false
	for _, command := range f.of("docs/k3s-recovery.md") {
		hosts := []string{"h3"}
		switch {
		case strings.HasPrefix(command, "systemctl disable"), strings.HasSuffix(command, " suffrage-controller"):
			hosts = f.voters
		case strings.HasPrefix(command, "mv "):
			hosts = []string{"h1", "h2"}
		case command == "systemctl enable --now k3s" && begun: // the chosen one first
			hosts = []string{"h1", "h2"}
		case command == "systemctl enable --now k3s":
			begun = true
		}
		command = strings.NewReplacer("accept ID", "accept "+id, "--drill FILE", "--drill "+newest).Replace(command)
		said := ""
		for _, h := range hosts {
			said = f.typed(h, "/", command)
		}
		if strings.HasSuffix(command, " snapshot save") {
			newest, _, _ = strings.Cut(said, "\n")
		}
		if m := regexp.MustCompile(`"cluster_id": "([0-9a-f]+)"`).FindStringSubmatch(said); m != nil {
			id = m[1]
		}
	}
	f.typed("h3", "/", "test -d "+db+" && test -d "+db+".before-reset && ! ls "+settings+"/99-suffrage* && systemctl -q is-active k3s suffrage-controller")
	for _, h := range []string{"h1", "h2"} {
		f.typed(h, "/", "test ! -e "+db+" && test -d "+db+".before-reset && systemctl -q is-active k3s && systemctl -q is-enabled k3s suffrage-controller")
	}
}
