package standby

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"suffrage/membership/host"
)

// k3sSince is the lowest minor version of K3s (1.33) on whose source the flavour
// rests; k3sRead is the highest one that was read.
const k3sSince, k3sRead = 33, 34

var k3sVersion = regexp.MustCompile(`(?m)^k3s version v1\.([0-9]{1,3})\.(\S+)`)

// version runs the K3s of the server's unit, which root would too, to ask for its
// version.
func (h Host) version(ctx context.Context) Check {
	const name = "program"
	f, err := h.Systemd.File(ctx, h.server())
	if err != nil {
		return unknown(name, err)
	}
	if len(f.Program) == 0 {
		return missing(name, errNoUnit.Error(), "install K3s with both of its units, and do not start it")
	}
	path := f.Program[0]
	info, err := os.Stat(h.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return missing(name, "there is no "+path, "install K3s of the version that the servers have")
	}
	if err != nil {
		return unknown(name, err)
	}
	if why := unsafe(info); why != "" {
		return wrong(name, path+" "+why, "install K3s again")
	}
	said, err := h.asked(ctx, path)
	if err != nil {
		return unknown(name, err)
	}
	m := k3sVersion.FindSubmatch(said)
	if m == nil {
		return wrong(name, fmt.Sprintf("%s is no K3s 1.x: %.60q", path, said), "install K3s of the version that the servers have")
	}
	minor, _ := strconv.Atoi(string(m[1]))
	text := fmt.Sprintf("%s is v1.%d.%s", path, minor, m[2])
	switch {
	case minor < k3sSince:
		return wrong(name, fmt.Sprintf("%s, at least v1.%d is supported", text, k3sSince), "install K3s of the version that the servers have")
	case minor > k3sRead:
		text += fmt.Sprintf(", newer than what docs/k3s.md was written for (v1.%d)", k3sRead)
	}
	return ok(name, text)
}

// k3sSettings looks at what K3s would start with: files of settings, drop-ins
// last, and the command line before both.
func (h Host) k3sSettings(ctx context.Context) Check {
	const name = "k3s"
	if c, is := h.unread(name); is {
		return c
	}
	s, err := host.ReadSettings(h.at(h.K3s.ConfigDir))
	if errors.Is(err, fs.ErrPermission) {
		return unknown(name, err)
	}
	if err != nil {
		return wrong(name, h.from(err.Error()), "correct that file")
	}
	f, err := h.Systemd.File(ctx, h.server())
	if err != nil {
		return unknown(name, err)
	}
	if len(f.Program) > 0 && !slices.Contains(f.Program, "server") {
		return wrong(name, h.serverName()+" does not start a server: "+strings.Join(f.Program, " "), "install K3s as a server (INSTALL_K3S_EXEC=server) as well as as an agent")
	}
	if e, is := errors.AsType[*host.CommandLineError](h.server().Takes(f.Program)); is {
		return wrong(name, "the command line of "+h.serverName()+" has "+e.Found, e.Help)
	}
	if flag, by := s.Overriding(h.at(h.K3s.ConfigDir)); flag != "" {
		return wrong(name, fmt.Sprintf("%s sets %s, and its name is behind that of the file in which Suffrage writes it: K3s goes by the last one", h.from(by.From), flag), "take it out of that file")
	}
	s.Add(f.Program)
	if c := h.k3sServer(s); c.State != OK {
		return c
	}
	if len(s["token"]) == 0 && len(s["token-file"]) == 0 {
		found, err := h.k3sSays("K3S_TOKEN", filepath.Join("server", "token"))
		if errors.Is(err, fs.ErrPermission) {
			return unknown(name, err)
		}
		if !found {
			return missing(name, "there is no token, by which it joins", "token-file in "+h.k3sFile()+", with the token of the servers")
		}
	}
	return ok(name, "it would join as "+h.Entry.Name+" with node-ip "+h.Entry.Address.String())
}

// k3sServer looks at the settings that make it the server which is expected here.
func (h Host) k3sServer(s host.Settings) Check {
	const name = "k3s"
	for _, flag := range []struct{ name, why string }{
		{"cluster-init", "with which a removed server may come up as a new cluster"},
		{"disable-etcd", "with which K3s keeps no vote"},
	} {
		on, err := s.On(flag.name)
		if err != nil {
			return wrong(name, h.from(err.Error()), "correct that file")
		}
		if on {
			from := h.from(s.Last(flag.name).From)
			return wrong(name, fmt.Sprintf("%s is set in %s, %s", flag.name, from, flag.why), "take it out of "+from)
		}
	}
	if c := h.k3sData(s); c.State != OK {
		return c
	}
	address, nodeName, file := h.Entry.Address.String(), s.Last("node-name").Value, h.k3sFile()
	ip := ""
	if all := s["node-ip"]; len(all) > 0 {
		ip, _, _ = strings.Cut(all[0].Value, ",") // of several the first is the peers'
	}
	switch {
	case nodeName != "" && nodeName != h.Entry.Name:
		return wrong(name, fmt.Sprintf("node-name is %s, the roster's is %s", nodeName, h.Entry.Name), "one name everywhere, and it never changes")
	case ip == "":
		return missing(name, "node-ip is not set, and K3s fixes the peer URL by it", "node-ip: "+address+" in "+file)
	case ip != address:
		return wrong(name, fmt.Sprintf("node-ip is %s, the mesh address %s", ip, address), "node-ip: "+address+" in "+file)
	case s.Last("datastore-endpoint").Value != "":
		return wrong(name, "datastore-endpoint is set: then K3s runs no etcd", "flavour: etcd, or take it out")
	}
	return ok(name, "")
}

// k3sData compares K3s's data directory with the one that is managed here.
func (h Host) k3sData(s host.Settings) Check {
	const name = "k3s"
	at := s.Last("data-dir")
	if at.From == "" {
		// The environment is weaker than files, and then it is the owner's affair.
		if elsewhere, err := h.k3sSays("K3S_DATA_DIR", ""); err != nil || elsewhere {
			return ok(name, "")
		}
		at = host.Setting{Value: k3sDataDir, From: "K3s itself"}
	}
	if filepath.Clean(at.Value) != filepath.Clean(h.K3s.DataDir) {
		return wrong(name, fmt.Sprintf("its data directory is %s by %s, and k3s.data_dir is %s", at.Value, h.from(at.From), h.K3s.DataDir), "correct k3s.data_dir in "+h.Config+", or set data-dir in "+h.k3sFile())
	}
	return ok(name, "")
}

// k3sDirectories are those of K3s in which the agent writes; none without K3s. The
// datastore's own is none of them: a recovery moves it, and systemd's leave with it.
func (h Host) k3sDirectories() []string {
	if h.K3s == nil {
		return nil
	}
	return []string{h.K3s.ConfigDir, filepath.Join(h.K3s.DataDir, "server"), filepath.Join(h.K3s.DataDir, "suffrage")}
}

// k3sDataDir is K3s's own.
const k3sDataDir = "/var/lib/rancher/k3s"

// k3sFile is K3s's file of settings that is the owner's.
func (h Host) k3sFile() string { return strings.TrimSuffix(h.K3s.ConfigDir, ".d") }

// from is a text about a path as the host has it.
func (h Host) from(s string) string {
	if h.Root == "" {
		return s
	}
	return strings.ReplaceAll(s, h.Root, "")
}

// k3sSays looks where the installer puts what it is told: into the environment of
// the unit; or whether a file below K3s's data directory says something, if one is
// named.
func (h Host) k3sSays(variable, file string) (bool, error) {
	data, err := readSmall(h.at(filepath.Join(dropInDir, h.serverName()+".env")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if bytes.Contains(data, []byte(variable)) {
		return true, nil
	}
	if file == "" {
		return false, nil
	}
	data, err = readSmall(h.at(filepath.Join(h.K3s.DataDir, file)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(bytes.TrimSpace(data)) > 0, err
}

// maxSmall bounds a file that people or installers write, in bytes.
const maxSmall = 1 << 20

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSmall {
		return nil, fmt.Errorf("%s: not a file of at most %d KiB", path, maxSmall>>10)
	}
	return os.ReadFile(path)
}
