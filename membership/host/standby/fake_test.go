package standby

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"suffrage/membership/host"
)

// files is a Systemd that has loaded the units of a root, and knows as much of
// them as is asked here.
type files struct {
	root    string
	loaded  map[string]string
	running map[string]bool
	err     error // of everything: there is no systemd
}

var places = []string{dropInDir, unitDir, "/usr/lib/systemd/system"}

// text is all that the files say of a unit now.
func (f *files) text(name string) (text, fragment string, dropIns []string) {
	for _, p := range places {
		if b, err := os.ReadFile(filepath.Join(f.root, p, name)); err == nil {
			text, fragment = string(b), filepath.Join(p, name)
			break
		}
	}
	found, _ := filepath.Glob(filepath.Join(f.root, dropInDir, name+".d", "*.conf"))
	for _, d := range found {
		b, _ := os.ReadFile(d)
		text += "\n" + string(b)
		dropIns = append(dropIns, strings.TrimPrefix(d, f.root))
	}
	return text, fragment, dropIns
}

func (f *files) File(_ context.Context, u host.Systemd) (out host.UnitFile, err error) {
	if f.err != nil {
		return out, f.err
	}
	text, fragment, dropIns := f.text(u.Name)
	if to, err := os.Readlink(filepath.Join(f.root, dropInDir, u.Name)); err == nil && to == "/dev/null" {
		return host.UnitFile{Loaded: "masked"}, nil
	}
	if fragment == "" {
		return host.UnitFile{Loaded: "not-found"}, nil
	}
	out = host.UnitFile{Loaded: "loaded", Fragment: fragment, DropIns: dropIns, Enabled: "disabled", Running: f.running[u.Name]}
	out.Stale = f.loaded[u.Name] != text
	if _, err := os.Lstat(f.link(u.Name)); err == nil {
		out.Enabled = "enabled"
	}
	honours := false
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if cmd, is := strings.CutPrefix(lines.Text(), "ExecStart="); is {
			out.Program = strings.Fields(cmd)
		}
		sign := "!"
		if u.Behind {
			sign = ""
		}
		honours = honours || lines.Text() == "AssertPathExists="+sign+u.Data+"/fence.json"
	}
	if !honours {
		out.Unsafe = errors.New("it does not honour the fence")
	} else if u.K3s {
		out.Unsafe = u.Takes(out.Program)
	}
	return out, nil
}

func (f *files) link(name string) string {
	return filepath.Join(f.root, dropInDir, "multi-user.target.wants", name)
}

func (f *files) Reload(context.Context) error {
	if f.err != nil {
		return f.err
	}
	f.loaded = map[string]string{}
	for _, p := range places {
		entries, _ := os.ReadDir(filepath.Join(f.root, p))
		for _, e := range entries {
			f.loaded[e.Name()], _, _ = f.text(e.Name())
		}
	}
	return nil
}

func (f *files) Enable(ctx context.Context, name string, on bool) error {
	_, fragment, _ := f.text(name)
	switch {
	case f.err != nil:
		return f.err
	case !on:
		_ = os.Remove(f.link(name))
		_ = os.Remove(filepath.Dir(f.link(name)))
		return nil
	case fragment == "":
		return errors.New("no such unit " + name)
	}
	if err := os.MkdirAll(filepath.Dir(f.link(name)), 0o755); err != nil {
		return err
	}
	return os.Symlink(fragment, f.link(name))
}

func (f *files) Stop(_ context.Context, name string) error {
	f.running[name] = false
	return f.err
}
