package standby

import (
	"bufio"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"go.etcd.io/etcd/api/v3/version"
)

// serviceUser is whom the units of the etcd flavour run as.
const serviceUser = "suffrage"

func (h Host) settings() Check {
	const name = "settings"
	switch {
	case len(h.Problems) > 0:
		return wrong(name, strings.Join(h.Problems, "; "), "suffrage config check")
	case h.Root == "" && h.Config != shippedConfig:
		return wrong(name, fmt.Sprintf("these are %s, and the units read %s", h.Config, shippedConfig), "put them there")
	}
	if c := h.key(); c.State != OK {
		return c
	}
	return ok(name, fmt.Sprintf("%s, the key and the roster fit: host %s at %s", h.Config, h.Entry.Name, h.Entry.Address))
}

// key looks at whose the host's key is: the services read it without root's
// powers, also where they run as root.
func (h Host) key() Check {
	const name = "settings"
	path := filepath.Join(h.Dir, "host.key")
	info, err := os.Stat(h.at(path))
	if err != nil {
		return unknown(name, err)
	}
	uid, _, err := h.owner()
	if err != nil {
		return ok(name, "") // the check of the user says it
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != uid {
		return wrong(name, fmt.Sprintf("%s belongs to user %d, and the services run as %d, which cannot read it", path, owner, uid), fmt.Sprintf("chown %d %s", uid, path))
	}
	return ok(name, "")
}

// program looks at what the units start.
func (h Host) program() Check {
	const name = "program"
	const install = "install -m 0755 suffrage " + program
	info, err := os.Stat(h.at(program))
	if errors.Is(err, fs.ErrNotExist) {
		return missing(name, "there is no "+program, install)
	}
	if err != nil {
		return unknown(name, err)
	}
	if why := unsafe(info); why != "" {
		return wrong(name, program+" "+why, install)
	}
	b, err := buildinfo.ReadFile(h.at(program))
	if err != nil {
		return wrong(name, program+" is no program of Suffrage: "+err.Error(), install)
	}
	v := Version(b)
	if v != h.Software {
		return wrong(name, fmt.Sprintf("%s is suffrage %s, this is %s", program, v, h.Software), install)
	}
	return ok(name, fmt.Sprintf("%s, suffrage %s with etcd %s", program, v, version.Version))
}

// Version is what a build calls itself.
func Version(b *buildinfo.BuildInfo) string {
	v := b.Main.Version
	for _, s := range b.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v
}

// unsafe says why a program is not one that root may start.
func unsafe(info fs.FileInfo) string {
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return "is no file"
	case mode&0o111 == 0:
		return "cannot be executed"
	case mode&0o022 != 0:
		return fmt.Sprintf("can be changed by others than its owner (mode %04o)", mode.Perm())
	case owner != 0 && owner != os.Geteuid():
		return fmt.Sprintf("belongs to user %d: whoever that is could change what runs here", owner)
	}
	return ""
}

func (h Host) user() Check {
	uid, _, err := h.owner()
	if errors.Is(err, errNoUser) {
		return missing("user", err.Error(), "useradd --system --home "+h.Data+" --shell /usr/sbin/nologin "+serviceUser)
	}
	if err != nil {
		return unknown("user", err)
	}
	return ok("user", fmt.Sprintf("%s, number %d", serviceUser, uid))
}

var errNoUser = errors.New("there is no user " + serviceUser)

// owner is whose the files are: the user that the services run as.
func (h Host) owner() (uid, gid int, err error) {
	if h.K3s != nil {
		return 0, 0, nil
	}
	if h.Root == "" {
		u, err := user.Lookup(serviceUser)
		if _, no := errors.AsType[user.UnknownUserError](err); no {
			return 0, 0, errNoUser
		}
		if err != nil {
			return 0, 0, fmt.Errorf("look up user %s: %w", serviceUser, err)
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		return uid, gid, errors.Join(err1, err2)
	}
	f, err := os.Open(h.at("/etc/passwd"))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(io.LimitReader(f, 1<<20)); lines.Scan(); {
		if p := strings.Split(lines.Text(), ":"); len(p) > 3 && p[0] == serviceUser {
			uid, err1 := strconv.Atoi(p[2])
			gid, err2 := strconv.Atoi(p[3])
			return uid, gid, errors.Join(err1, err2)
		}
	}
	return 0, 0, errNoUser
}

// directories looks at where things are read and written.
func (h Host) directories() []Check {
	const name = "directory"
	uid, gid, err := h.owner()
	out := []Check{}
	for _, d := range []struct {
		path   string
		most   fs.FileMode
		theirs bool
	}{{h.Dir, 0o755, false}, {h.Data, dataMode, true}} {
		info, e := os.Stat(h.at(d.path))
		c := ok(name, "as it has to be")
		switch {
		case errors.Is(e, fs.ErrNotExist) && d.theirs:
			c = missing(name, "it is not there", prepares)
		case errors.Is(e, fs.ErrNotExist):
			c = missing(name, "it is not there", "suffrage identity init makes it")
		case e != nil:
			c = unknown(name, e)
		case !info.IsDir():
			c = wrong(name, "it is no directory", "move it away")
		case d.theirs && err != nil:
			c = unknown(name, fmt.Errorf("whose it has to be is not known: %w", err))
		case d.theirs && int(info.Sys().(*syscall.Stat_t).Uid) != uid:
			c = wrong(name, fmt.Sprintf("it belongs to user %d, and has to belong to %d", info.Sys().(*syscall.Stat_t).Uid, uid), prepares)
		case err == nil && !enters(info, uid, gid):
			c = wrong(name, fmt.Sprintf("mode %04o of user %d, and the services run as user %d, which cannot read what is in it", info.Mode().Perm(), info.Sys().(*syscall.Stat_t).Uid, uid), fmt.Sprintf("chown -R %d:%d %s", uid, gid, d.path))
		case info.Mode().Perm()&^d.most != 0:
			c = wrong(name, fmt.Sprintf("mode %04o, at most %04o is safe", info.Mode().Perm(), d.most), fmt.Sprintf("chmod %04o %s", d.most, d.path))
		}
		out = append(out, c.of(d.path))
	}
	for _, d := range h.k3sDirectories() { // of any mode: K3s has made them, or will
		c := ok(name, "as it has to be")
		switch info, err := os.Stat(h.at(d)); {
		case errors.Is(err, fs.ErrNotExist):
			c = missing(name, "it is not there, so systemd starts no agent that may write there (226/NAMESPACE)", prepares)
		case err != nil:
			c = unknown(name, err)
		case !info.IsDir():
			c = wrong(name, "it is no directory", "move it away")
		}
		out = append(out, c.of(d))
	}
	return out
}

// enters reports whether a user may read what is in a directory. Root may not by
// being root: the units take its powers away.
func enters(dir fs.FileInfo, uid, gid int) bool {
	st, mode := dir.Sys().(*syscall.Stat_t), dir.Mode().Perm()
	switch {
	case int(st.Uid) == uid:
		return mode&0o500 == 0o500
	case int(st.Gid) == gid:
		return mode&0o050 == 0o050
	}
	return mode&0o005 == 0o005
}

// dataMode is the units' StateDirectoryMode.
const dataMode = 0o750
