package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"suffrage/mesh-tests/pages"
)

// Where a command of docs/install.md is run.
const (
	onAdmin  = "on the machine that keeps the authority"
	onAll    = "on every host, as it is shown for h1"
	onH1     = "on h1"
	onVoters = "on h1, h2 and h3"
	onLeader = "where a controller has led"
	started  = "as processes, since there is no systemd here"
)

// installed says of the commands of docs/install.md and docs/identity.md where they are
// typed.
var installed = map[string]string{
	"scp suffrage h1:":                       onAll,
	"sudo suffrage man /usr/local/share/man": onH1,
	"suffrage completion bash | sudo tee /usr/share/bash-completion/completions/suffrage > /dev/null": onH1,
	"sudo -u suffrage suffrage identity init --host h1 --address 100.64.0.1":                          onAll,
	"scp roster.yaml h1:": onAll,
	"ssh h1 sudo install -o suffrage -g suffrage -m 0644 roster.yaml /etc/suffrage/roster.yaml": onAll,
	"mkdir -m 0700 authority":                     onAdmin,
	"cp roster.yaml authority/":                   onAdmin,
	"./suffrage identity ca init --dir authority": onAdmin,
	"ssh h1 sudo -u suffrage suffrage identity request | ./suffrage identity sign --dir authority - > h1.crt": onAll,
	"scp h1.crt authority/ca.crt h1:": onAll,
	"ssh h1 sudo install -o suffrage -g suffrage -m 0644 h1.crt /etc/suffrage/host.crt":      onAll,
	"ssh h1 sudo install -o suffrage -g suffrage -m 0644 ca.crt /etc/suffrage/ca.crt":        onAll,
	"ssh h1 sudo -u suffrage suffrage identity check":                                        onAll,
	"sudo install -o suffrage -g suffrage -m 0640 suffrage.yaml /etc/suffrage/suffrage.yaml": onAll,
	"sudo -u suffrage suffrage config check":                                                 onAll,
	"sudo systemctl enable --now suffrage-agent":                                             started,
	"sudo -u suffrage suffrage cluster create":                                               onVoters,
	"sudo systemctl enable --now suffrage-member suffrage-controller":                        started,
	"sudo -u suffrage suffrage host eligible h1":                                             onH1,
	"sudo -u suffrage suffrage host eligible h2":                                             onH1,
	"sudo -u suffrage suffrage host eligible h3":                                             onH1,
	`sudo -u suffrage suffrage host eligible h4 --reason "wired, SSD"`:                       onH1,
	`sudo -u suffrage suffrage host pin h1 --reason "the server in the rack"`:                onH1,
	"sudo -u suffrage suffrage status":                                                       onH1,
	"sudo -u suffrage suffrage replay /var/lib/suffrage/decisions":                           onLeader,
	"sudo -u suffrage suffrage report -o html > report.html":                                 onLeader,

	"ssh h1 sudo -u suffrage suffrage identity request | suffrage identity sign --dir authority - > h1.crt": onAll,
	"ssh h1 sudo -u suffrage suffrage identity show":                                                        onAll,
	"scp h1.crt h1:": onAll,
}

// Nobody logs in as root, and what is under these belongs to the user suffrage, with no
// right for others: pages that are typed by a person with a home and sudo say so.
func TestDocsSayWhoMay(t *testing.T) {
	for _, page := range []string{"docs/install.md", "docs/identity.md", "docs/report.md", "docs/k3s-install.md", "docs/recovery.md"} {
		for _, b := range pages.Blocks(pages.Read(t, page)) {
			for _, command := range b.Commands() {
				where := fmt.Sprintf("%s:%d shows %q", page, b.Line, command)
				switch {
				case !b.Typed():
				case strings.HasPrefix(command, "scp ") && regexp.MustCompile(`\w:/`).MatchString(command):
					t.Errorf("%s: scp reaches a home and nothing else", where)
				case regexp.MustCompile(`/etc/suffrage|/var/lib/suffrage|^(systemctl|journalctl|apt-get|install|useradd) `).MatchString(command) && !strings.Contains(command, "sudo "):
					t.Errorf("%s: that takes sudo", where)
				}
			}
		}
	}
}

// TestDocsInstall types what docs/install.md shows, in its order: four machines
// that are directories and loopback addresses.
func TestDocsInstall(t *testing.T) {
	shown := map[string]bool{}
	for _, page := range []string{"docs/install.md", "docs/identity.md"} {
		for _, c := range pages.Of(t, pages.Install, page) {
			shown[c.Text] = true
			if installed[c.Text] == "" {
				t.Errorf("%s:%d shows %q, and nothing is said of where it is typed", page, c.Line, c.Text)
			}
		}
	}
	for command := range installed {
		if !shown[command] {
			t.Errorf("no page shows %q any more", command)
		}
	}
	if t.Failed() {
		return
	}
	t.Run("identity.md", func(t *testing.T) {
		m := newMachines(t)
		for _, c := range pages.Of(t, pages.Install, "docs/identity.md") {
			m.follow(c.Text)
			if strings.Contains(c.Text, "identity init") { // the page has these in words
				for _, command := range []string{"scp roster.yaml h1:", "ssh h1 sudo install -o suffrage -g suffrage -m 0644 roster.yaml /etc/suffrage/roster.yaml",
					"mkdir -m 0700 authority", "cp roster.yaml authority/", "./suffrage identity ca init --dir authority"} {
					m.follow(command)
				}
			}
			if strings.HasPrefix(c.Text, "scp h1.crt") {
				m.follow("scp h1.crt authority/ca.crt h1:")
				m.follow("ssh h1 sudo install -o suffrage -g suffrage -m 0644 ca.crt /etc/suffrage/ca.crt")
			}
		}
	})
	m := newMachines(t)
	for _, b := range pages.Blocks(pages.Read(t, "docs/install.md")) {
		if strings.Contains(b.Text, "initial_cluster") {
			m.settings(b.Text)
		}
		for _, command := range b.Commands() {
			if b.Typed() && strings.Contains(pages.By(pages.Command{Page: "docs/install.md", Text: command}), pages.Install) {
				m.follow(command)
			}
		}
	}
}

// follow types a command where it belongs.
func (m *machines) follow(command string) {
	where := installed[command]
	m.t.Logf("%s: %s", command, where)
	switch where {
	case onAdmin:
		m.typed("admin", command)
	case onH1:
		m.typed("h1", command)
	case onAll:
		for i, h := range m.hosts {
			host := h
			if strings.HasPrefix(command, "ssh") || strings.HasPrefix(command, "scp") {
				host = "admin"
			}
			said := m.typed(host, strings.NewReplacer("h1", h, "100.64.0.1", fmt.Sprintf("100.64.0.%d", i+1)).Replace(command))
			if strings.Contains(command, "identity init") {
				m.entries += said
				m.roster()
			}
		}
	case onVoters:
		for _, h := range m.hosts[:3] {
			m.typed(h, command+" --confirm 'create h1,h2,h3'")
		}
	case onLeader:
		m.typed(m.leader(), command)
	case started:
		inFull(m.t) // up to here it takes a second
		units := strings.Fields(command)[4:]
		hosts := m.hosts
		if !slices.Contains(units, "suffrage-agent") {
			hosts = hosts[:3]
		}
		for _, u := range units {
			for _, h := range hosts {
				m.start(h, strings.TrimPrefix(u, "suffrage-"))
			}
		}
	}
}

// machines are the hosts of the page, and one for the authority.
type machines struct {
	t                *testing.T
	dir, program     string
	hosts            []string
	prelude, entries string
}

func newMachines(t *testing.T) *machines {
	m := &machines{t: t, dir: t.TempDir(), program: asProgram(t), hosts: []string{"h1", "h2", "h3", "h4"}}
	for _, h := range append(m.hosts, "admin") {
		for _, d := range []string{"etc", "var", "home"} {
			if err := os.MkdirAll(filepath.Join(m.dir, h, d), 0o750); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The words of the page, on machines that are directories.
	m.prelude = fmt.Sprintf(`set -o pipefail
DIR=%q
suffrage() {
  case "$* " in
  *" --dir "*|man*|completion*) %[2]q "$@" ;;
  identity*) %[2]q "$@" --dir "$DIR/$HOST/etc" ;;
  *) %[2]q "$@" --config "$DIR/$HOST/etc/suffrage.yaml" ;;
  esac
}
sudo() { if [ "$1" = -u ]; then shift 2; fi; "$@"; }
install() {
  local words=()
  while (($#)); do case $1 in -o|-g) shift 2 ;; *) words+=("$1"); shift ;; esac; done
  command install "${words[@]}"
}
ssh() { ( HOST=$1; cd "$DIR/$1/home"; shift; "$@" ); }
scp() { local to=${!#}; cp -P "${@:1:$#-1}" "$DIR/${to%%:}/home/"; }
`, m.dir, m.program)
	// What go build makes; the page has it elsewhere for the run of all pages.
	if err := os.Symlink(m.program, filepath.Join(m.dir, "admin", "home", "suffrage")); err != nil {
		t.Fatal(err)
	}
	return m
}

// asProgram is this test under the name of the program: TestMain sees to it, and
// nothing has to be built.
func asProgram(t *testing.T) string {
	self, err := os.Executable()
	name := filepath.Join(t.TempDir(), "suffrage")
	if err == nil {
		err = os.Symlink(self, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// here puts the page's paths and addresses on this machine.
func (m *machines) here(host, text string) string {
	if there, is := strings.CutPrefix(text, "ssh "); is {
		host, _, _ = strings.Cut(there, " ")
	}
	return strings.NewReplacer("100.64.0.", "127.0.66.", "/usr/local/share/man", m.dir+"/man", "/usr/share/bash-completion/completions", m.dir,
		"/var/lib/suffrage", filepath.Join(m.dir, host, "var"), "/etc/suffrage", filepath.Join(m.dir, host, "etc")).Replace(text)
}

// typed runs a command until it works: an election may be under way.
func (m *machines) typed(host, command string) string {
	m.t.Helper()
	var said []byte
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		cmd := exec.CommandContext(m.t.Context(), "bash", "-c", m.prelude+"HOST="+host+"\n"+m.here(host, command))
		cmd.Dir = filepath.Join(m.dir, host, "home")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if said, err = cmd.Output(); err == nil {
			return string(said)
		}
		said = append(said, errs.Bytes()...)
	}
	m.t.Fatalf("on %s: %s: %v\n%s", host, command, err, said)
	return ""
}

// roster collects the entries that identity init printed, as the page says in words.
func (m *machines) roster() {
	if err := os.WriteFile(filepath.Join(m.dir, "admin", "home", "roster.yaml"), []byte("hosts:\n"+m.entries), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// settings writes those of the page to the home on every host, with what it takes for four
// hosts to be one machine, and for windows that fill in seconds.
func (m *machines) settings(text string) {
	for i, h := range m.hosts {
		var s map[string]any
		if err := yaml.Unmarshal([]byte(m.here(h, text)), &s); err != nil {
			m.t.Fatal(err)
		}
		section := func(key string, more map[string]any) {
			into, _ := s[key].(map[string]any)
			if into == nil {
				into = map[string]any{}
			}
			maps.Copy(into, more)
			s[key] = into
		}
		address := fmt.Sprintf("127.0.66.%d", i+1)
		s["host"], s["dir"], s["data"] = h, filepath.Join(m.dir, h, "etc"), filepath.Join(m.dir, h, "var")
		section("agent", map[string]any{"period": "100ms", "ping_timeout": "1s", "metrics": address + ":7401", "member_metrics": "http://" + address + ":2381/metrics"})
		section("member", map[string]any{"metrics": "http://" + address + ":2381"})
		section("controller", map[string]any{"round": "1s", "metrics": address + ":7402", "limits": map[string]any{"wal_fsync": "200ms", "backend_commit": "500ms", "storage_quota": 1 << 28, "memory_used_max": 1.0}})
		data, err := yaml.Marshal(s)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.dir, h, "home", "suffrage.yaml"), data, 0o644)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// start runs one of a host's processes until the test ends.
func (m *machines) start(host, role string) {
	log, err := os.Create(filepath.Join(m.dir, host, role+".log"))
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(m.program, role, "--config", filepath.Join(m.dir, host, "etc", "suffrage.yaml"))
	cmd.Stdout, cmd.Stderr = log, log
	// Nothing is left where the test itself is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && m.t.Failed() {
			m.t.Logf("%s %s:\n%s", host, role, said[max(0, len(said)-2000):])
		}
	})
}

// leader is a host on which a controller has written down a moment.
func (m *machines) leader() string {
	m.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(m.dir, "h*", "var", "decisions", "*.timeline.jsonl")); len(found) > 0 {
			return strings.Split(strings.TrimPrefix(found[0], m.dir+"/"), "/")[0]
		}
	}
	m.t.Fatal("no controller wrote down anything")
	return ""
}
