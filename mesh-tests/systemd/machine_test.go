package systemd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is one booted host.
type machine struct {
	t       *testing.T
	name    string
	address string // on the mesh, "" without a network
	dir     string
	binds   []string

	nspawn *exec.Cmd
	exited chan struct{} // closed when nspawn has ended
	leader int           // its first process, by our number
}

// rebootCode is how systemd-nspawn ends when the host asked for a reboot.
const rebootCode = 133

// lasting is a deadline far beyond what anything here takes.
const lasting = time.Minute

func pause() { time.Sleep(20 * time.Millisecond) }

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(lasting); !is(); pause() {
		if time.Now().After(deadline) {
			t.Fatalf("not so within %v: %s", lasting, what)
		}
	}
}

// boot makes a host and waits until it runs. more are further directories that
// have the same path inside and outside.
func boot(t *testing.T, host, address string, more ...string) *machine {
	t.Helper()
	if lab.why != "" {
		t.Skip("SKIPPED: " + lab.why)
	}
	m := &machine{t: t, name: host, address: address, dir: filepath.Join(lab.dir, host), binds: more}
	t.Cleanup(m.destroy)
	for _, d := range []string{"up/etc/systemd/system", "up/var/log/journal", "work", "root"} {
		m.must(os.MkdirAll(filepath.Join(m.dir, d), 0o755))
	}
	m.must(errors.Join(
		m.write("up/etc/hostname", host+"\n"),
		m.write("up/etc/hosts", "127.0.0.1 localhost\n"),
		m.write("up/etc/resolv.conf", ""),
		m.write("up/etc/machine-id", "")))
	for _, u := range []string{"getty.target", "console-getty.service", "e2scrub_all.timer", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer"} {
		m.must(os.Symlink("/dev/null", filepath.Join(m.dir, "up/etc/systemd/system", u)))
	}
	m.outside("mount", "-t", "overlay", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s/up,workdir=%s/work", lab.root, m.dir, m.dir), name(host), filepath.Join(m.dir, "root"))
	m.network()
	m.power()
	return m
}

// network gives the host a link to a bridge that leads nowhere else.
func (m *machine) network() {
	m.t.Helper()
	m.outside("ip", "netns", "add", name(m.name))
	m.outside("ip", "-n", name(m.name), "link", "set", "lo", "up")
	if m.address == "" {
		return
	}
	if _, err := os.Stat("/sys/class/net/" + name("")); err != nil {
		m.outside("ip", "link", "add", name(""), "type", "bridge")
		m.outside("ip", "addr", "add", mesh+"1/24", "dev", name(""))
		m.outside("ip", "link", "set", name(""), "up")
	}
	m.outside("ip", "link", "add", name(m.name), "type", "veth", "peer", "name", "eth0", "netns", name(m.name))
	m.outside("ip", "link", "set", name(m.name), "master", name(""), "up")
	m.outside("ip", "-n", name(m.name), "addr", "add", m.address+"/24", "dev", "eth0")
	m.outside("ip", "-n", name(m.name), "link", "set", "eth0", "up")
}

// power switches the host on and waits until it has come up.
func (m *machine) power() {
	m.t.Helper()
	groups := cgroups()
	// The shell is only to be in the groups before systemd-nspawn begins.
	script := `for g in $1; do echo $$ >$g/cgroup.procs || exit 1; done; shift; exec "$@"`
	for i, c := range groups {
		groups[i] = filepath.Join(c, name(m.name))
		if err := os.Mkdir(groups[i], 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			m.t.Fatal(err)
		}
	}
	// A process namespace around it: a host does not outlive systemd-nspawn, nor
	// that us, however we end.
	args := []string{"-c", script, "sh", strings.Join(groups, " "), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "systemd-nspawn", "-b", "-q", "-D", filepath.Join(m.dir, "root"),
		"-M", name(m.name), "--hostname=" + m.name, "--register=no", "--keep-unit", "--network-namespace-path=/run/netns/" + name(m.name),
		"--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=read-only", "--bind-ro=" + filepath.Join(lab.dir, "release") + ":/opt/suffrage"}
	for _, b := range m.binds {
		args = append(args, "--bind="+b+":"+b)
	}
	cmd := exec.Command("sh", args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	m.nspawn, m.exited = cmd, make(chan struct{})
	started := make(chan error)
	go func(exited chan struct{}) {
		// The kernel's parent-death signal is the thread's.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(exited)
	}(m.exited)
	m.must(<-started)
	m.leader = 0
	eventually(m.t, m.name+" is up", func() bool {
		if m.down() {
			m.t.Fatalf("%s did not boot: %s\n%s", m.name, cmd.ProcessState, said)
		}
		// Its first child only prepares the one that becomes the host.
		m.leader = childOf(childOf(cmd.Process.Pid))
		if m.leader == 0 {
			return false
		}
		if _, err := os.Stat(m.inside("/run/systemd/private")); err != nil {
			return false
		}
		state, _ := m.try("systemctl", "is-system-running", "--wait")
		return strings.HasPrefix(state, "running") || strings.HasPrefix(state, "degraded")
	})
}

func (m *machine) down() bool {
	select {
	case <-m.exited:
		return true
	default:
		return false
	}
}

// reboot has the host reboot itself.
func (m *machine) reboot() {
	m.t.Helper()
	m.run("systemctl", "--no-block", "reboot")
	eventually(m.t, m.name+" goes down", m.down)
	if code := m.nspawn.ProcessState.ExitCode(); code != rebootCode {
		m.t.Fatalf("%s ended with %d, want a reboot", m.name, code)
	}
	m.power()
}

// cut takes the power away and gives it back.
func (m *machine) cut() {
	m.t.Helper()
	groups := cgroups()
	killCgroup(filepath.Join(groups[len(groups)-1], name(m.name)))
	eventually(m.t, m.name+" is off", m.down)
	m.power()
}

// destroy switches the host off and takes away what it was.
func (m *machine) destroy() {
	if m.t.Failed() && m.nspawn != nil && !m.down() {
		said, _ := m.try("journalctl", "-b", "-n", "60", "--no-pager", "-o", "short-monotonic")
		m.t.Logf("the journal of %s:\n%s", m.name, said)
	}
	if m.nspawn != nil && !m.down() {
		if m.leader != 0 {
			_ = syscall.Kill(m.leader, syscall.Signal(34+4)) // SIGRTMIN+4: power off
		}
		for range 500 {
			if m.down() {
				break
			}
			pause()
		}
	}
	for _, c := range cgroups() {
		killCgroup(filepath.Join(c, name(m.name)))
	}
	for _, c := range cgroups() {
		removeCgroup(filepath.Join(c, name(m.name)))
	}
	if m.nspawn != nil {
		<-m.exited
	}
	clean := [][]string{{"umount", filepath.Join(m.dir, "root")}, {"ip", "netns", "del", name(m.name)}}
	if m.address != "" { // with the namespace it would go only some time later
		clean = append([][]string{{"ip", "link", "del", name(m.name)}}, clean...)
	}
	for _, args := range clean {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			m.t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	_ = os.RemoveAll(m.dir)
}

// childOf gives the only child of a process, 0 while there is none.
func childOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// inside is a path of the host as we see it while it runs.
func (m *machine) inside(path string) string { return fmt.Sprintf("/proc/%d/root%s", m.leader, path) }

// write writes a file under the host's own directory.
func (m *machine) write(path, content string) error {
	path = filepath.Join(m.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

// put writes a file in the running host.
func (m *machine) put(path, content string) {
	m.t.Helper()
	m.must(m.write("root"+path, content))
}

// try runs a program in the host.
func (m *machine) try(args ...string) (string, error) { return m.feed("", args...) }

func (m *machine) feed(in string, args ...string) (string, error) {
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(m.leader), "-a", "--"}, args...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG=C.UTF-8", "SYSTEMD_COLORS=0"}
	cmd.Stdin = strings.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s on %s: %w: %s", strings.Join(args, " "), m.name, err, errs.String())
	}
	return out.String(), nil
}

// run is try for what has to succeed.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	m.must(err)
	return out
}

// outside runs a program of this machine.
func (m *machine) outside(args ...string) {
	m.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%s: %v", m.name, err)
	}
}
