package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// names of everything that a run makes outside its directory begin with this and
// the run's process ID, so that what a killed run left can be told from what is
// in use. An interface's name has at most 15 bytes.
const prefix = "sfg"

var made = regexp.MustCompile(`^` + prefix + `([0-9]+)(-.*)?$`)

// lab is what the hosts of one run have in common.
var lab struct {
	root, program string // what they are made of: SUFFRAGE_ROOT, SUFFRAGE_BIN
	dir           string
	why           string // why there is none
}

func TestMain(m *testing.M) {
	lab.why = missing()
	if lab.why != "" {
		fmt.Fprintln(os.Stderr, "SKIPPED, all of it:", lab.why)
		os.Exit(m.Run())
	}
	sweep()
	lab.dir = filepath.Join(filepath.Dir(lab.root), name(""))
	code := 1
	if err := release(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	sweepOf(strconv.Itoa(os.Getpid()))
	os.Exit(code)
}

// release lays out what the pages install from.
func release() error {
	dir := filepath.Join(lab.dir, "release")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, part := range []string{"deploy", "docs/runbooks"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS("../../"+part)); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(lab.program)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "suffrage"), program, 0o755)
}

// missing says what these tests lack here.
func missing() string {
	lab.root, lab.program = os.Getenv("SUFFRAGE_ROOT"), os.Getenv("SUFFRAGE_BIN")
	if os.Geteuid() != 0 {
		return "booting hosts needs root"
	}
	for _, p := range []string{"systemd-nspawn", "nsenter", "unshare", "ip", "mount", "umount"} {
		if _, err := exec.LookPath(p); err != nil {
			return p + " is missing: make systemd installs it"
		}
	}
	if lab.root == "" || lab.program == "" {
		return "SUFFRAGE_ROOT and SUFFRAGE_BIN are not set: run make systemd"
	}
	if len(cgroups()) == 0 {
		return "no cgroup hierarchy that systemd could have is mounted"
	}
	return ""
}

func name(of string) string {
	n := prefix + strconv.Itoa(os.Getpid())
	if of != "" {
		n += "-" + of
	}
	return n
}

// cgroups are the hierarchies that systemd wants: one, or two on a hybrid machine.
func cgroups() []string {
	var out []string
	for _, d := range []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(d, "cgroup.procs")); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// sweep takes away what runs left that are no more.
func sweep() {
	seen := map[string]bool{}
	for _, place := range append(cgroups(), "/run/netns", "/sys/class/net", filepath.Dir(lab.root)) {
		entries, _ := os.ReadDir(place)
		for _, e := range entries {
			if m := made.FindStringSubmatch(e.Name()); m != nil {
				seen[m[1]] = true
			}
		}
	}
	for pid := range seen {
		if _, err := os.Stat("/proc/" + pid); err != nil {
			sweepOf(pid)
		}
	}
}

// sweepOf takes away everything that the run with this process ID made.
func sweepOf(pid string) {
	mine := func(name string) bool {
		m := made.FindStringSubmatch(name)
		return m != nil && m[1] == pid
	}
	each := func(dir string, f func(name string)) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if mine(e.Name()) {
				f(e.Name())
			}
		}
	}
	for _, c := range cgroups() {
		each(c, func(n string) { killCgroup(filepath.Join(c, n)) })
	}
	for _, c := range cgroups() {
		each(c, func(n string) { removeCgroup(filepath.Join(c, n)) })
	}
	dir := filepath.Join(filepath.Dir(lab.root), prefix+pid)
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			_ = exec.Command("umount", "-l", f[1]).Run()
		}
	}
	each("/run/netns", func(n string) { _ = exec.Command("ip", "netns", "del", n).Run() })
	each("/sys/class/net", func(n string) { _ = exec.Command("ip", "link", "del", n).Run() })
	_ = os.RemoveAll(dir)
}

// killCgroup ends what runs in a group, where the hierarchy can.
func killCgroup(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
}

// removeCgroup takes away a group in which nothing runs any more.
func removeCgroup(dir string) {
	for range 200 {
		var dirs []string
		_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			_ = os.Remove(dirs[i])
		}
		if _, err := os.Stat(dir); err != nil {
			return
		}
		pause()
	}
}
