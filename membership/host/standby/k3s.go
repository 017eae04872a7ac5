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

	"sigs.k8s.io/yaml"
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
	c, err := h.k3sConfig()
	if errors.Is(err, fs.ErrPermission) {
		return unknown(name, err)
	}
	if err != nil {
		return wrong(name, err.Error(), "correct that file")
	}
	f, err := h.Systemd.File(ctx, h.server())
	if err != nil {
		return unknown(name, err)
	}
	flags(f.Program, c)
	file := filepath.Join(filepath.Dir(h.K3s.ConfigDir), "config.yaml")
	address := h.Entry.Address.String()
	switch {
	case len(f.Program) > 0 && !slices.Contains(f.Program, "server"):
		return wrong(name, h.serverName()+" does not start a server: "+strings.Join(f.Program, " "), "install K3s as a server (INSTALL_K3S_EXEC=server) as well as as an agent")
	case truthy(c["cluster-init"]):
		return wrong(name, "cluster-init is set, with which a removed server may come up as a new cluster", "take it out of "+file+" and of the command line")
	case c["node-name"] != "" && c["node-name"] != h.Entry.Name:
		return wrong(name, fmt.Sprintf("node-name is %s, the roster's is %s", c["node-name"], h.Entry.Name), "one name everywhere, and it never changes")
	case c["node-ip"] == "":
		return missing(name, "node-ip is not set, and K3s fixes the peer URL by it", "node-ip: "+address+" in "+file)
	case strings.Split(c["node-ip"], ",")[0] != address:
		return wrong(name, fmt.Sprintf("node-ip is %s, the mesh address %s", c["node-ip"], address), "node-ip: "+address+" in "+file)
	case c["datastore-endpoint"] != "":
		return wrong(name, "datastore-endpoint is set: then K3s runs no etcd", "flavour: etcd, or take it out")
	case c["token"] == "" && c["token-file"] == "":
		found, err := h.k3sToken()
		if errors.Is(err, fs.ErrPermission) {
			return unknown(name, err)
		}
		if !found {
			return missing(name, "there is no token, by which it joins", "token-file in "+file+", with the token of the servers")
		}
	}
	return ok(name, "it would join as "+h.Entry.Name+" with node-ip "+address)
}

func truthy(s string) bool { b, err := strconv.ParseBool(s); return err == nil && b }

// k3sConfig reads config.yaml and the drop-ins as K3s does: a later one counts.
func (h Host) k3sConfig() (map[string]string, error) {
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(h.at(h.K3s.ConfigDir), "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	files = append([]string{filepath.Join(filepath.Dir(h.at(h.K3s.ConfigDir)), "config.yaml")}, files...)
	for _, f := range files {
		data, err := readSmall(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var c map[string]any
		if err := yaml.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(f, h.Root), err)
		}
		for k, v := range c {
			if list, is := v.([]any); is && len(list) > 0 {
				v = list[0]
			}
			out[k] = fmt.Sprint(v)
		}
	}
	return out, nil
}

// flags puts in what a command line says, which counts before files.
func flags(args []string, into map[string]string) {
	for i, a := range args {
		name, is := strings.CutPrefix(a, "--")
		if !is {
			continue
		}
		k, v, given := strings.Cut(name, "=")
		switch {
		case given:
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			v = args[i+1]
		default:
			v = "true"
		}
		into[k] = v
	}
}

// k3sToken looks where the installer puts one: into the environment of the unit.
func (h Host) k3sToken() (bool, error) {
	for _, f := range []string{filepath.Join(dropInDir, h.serverName()+".env"), filepath.Join(h.K3s.DataDir, "server", "token")} {
		data, err := readSmall(h.at(f))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if !strings.HasSuffix(f, ".env") && len(bytes.TrimSpace(data)) > 0 || bytes.Contains(data, []byte("K3S_TOKEN")) {
			return true, nil
		}
	}
	return false, nil
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
