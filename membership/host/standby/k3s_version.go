package standby

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// errNoUnit: the unit of the server is not there, or starts nothing.
var errNoUnit = errors.New("no unit says where K3s is")

// K3sVersion gives a reader of what the K3s of the server's unit calls itself, such as
// v1.34.2+k3s1: what a start would run, which after an upgrade may be another than what
// runs. K3s brings its etcd with it, so whoever decides compares it with the voters'.
// The program is asked again only once its file has changed. One goroutine uses it.
func (h Host) K3sVersion() func(context.Context) (string, error) {
	seen, version := "", ""
	return func(ctx context.Context) (string, error) {
		f, err := h.Systemd.File(ctx, h.server())
		if err != nil {
			return "", fmt.Errorf("standby: version of K3s: %w", err)
		}
		if len(f.Program) == 0 {
			return "", fmt.Errorf("standby: version of K3s: %w", errNoUnit)
		}
		path := f.Program[0]
		info, err := os.Stat(h.at(path))
		if err != nil {
			return "", fmt.Errorf("standby: version of K3s: %w", err)
		}
		if why := unsafe(info); why != "" {
			return "", fmt.Errorf("standby: version of K3s: %s %s: install K3s again", path, why)
		}
		file := fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime())
		if file == seen {
			return version, nil
		}
		said, err := h.asked(ctx, path)
		if err != nil {
			return "", fmt.Errorf("standby: version of K3s: %w", err)
		}
		m := k3sVersion.FindSubmatch(said)
		if m == nil {
			return "", fmt.Errorf("standby: version of K3s: %s is no K3s 1.x: %.60q", path, said)
		}
		seen, version = file, fmt.Sprintf("v1.%s.%s", m[1], m[2])
		return version, nil
	}
}

// asked is what a program says to --version.
func (h Host) asked(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.at(path), "--version")
	cmd.WaitDelay = time.Second
	said, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", path, err)
	}
	return said, nil
}
