package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"suffrage/demo"
)

// Host is one machine: a network, a cgroup in which all its processes are, and
// a directory that is its disk.
type Host struct {
	Number int
	Name   string
	// Dir outlives the power.
	Dir string

	net        *Network
	group      string
	supervisor *demo.Supervisor
}

// NewHost makes the host of a network with this number. Close takes its cgroup
// away again.
func NewHost(n *Network, s *demo.Supervisor, number int, dir string) (*Host, error) {
	h := &Host{Number: number, Name: fmt.Sprintf("h%d", number), Dir: dir, net: n, supervisor: s}
	h.group = filepath.Join(cgroup(), h.Name)
	for _, d := range []string{h.group, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("lab: %s: %w", h.Name, err)
		}
	}
	return h, nil
}

// entering is the command line that becomes the command on the host; the host's
// network has to be its first extra file.
func (h *Host) entering(args []string) ([]string, []*os.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("lab: %w", err)
	}
	return append([]string{self, enterArgument, h.group}, args...), []*os.File{h.net.spaces[h.Number-1]}, nil
}

// Start starts a process that ends with the supervisor, or with the power.
func (h *Host) Start(ctx context.Context, name string, args ...string) (*demo.Child, error) {
	line, files, err := h.entering(args)
	if err != nil {
		return nil, err
	}
	return h.supervisor.Start(ctx, demo.Process{Name: h.Name + " " + name, Args: line, Log: filepath.Join(h.Dir, name+".log"), Files: files})
}

// Run runs a command to its end and gives its output.
func (h *Host) Run(ctx context.Context, args ...string) (string, error) {
	line, files, err := h.entering(args)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.ExtraFiles = files
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s on %s: %w: %s", strings.Join(args, " "), h.Name, err, said.String())
	}
	return out.String(), nil
}

// Freeze stops all processes of the host where they are. Its kernel goes on:
// connections are accepted, and nobody answers.
func (h *Host) Freeze() error { return h.freeze("1") }

// Thaw lets them go on.
func (h *Host) Thaw() error { return h.freeze("0") }

func (h *Host) freeze(want string) error {
	if err := h.control("cgroup.freeze", want); err != nil {
		return err
	}
	return h.await("frozen " + want)
}

// Kill ends all processes of the host at once, frozen ones too, as a loss of
// power does but for what was written and not synced: that is kept.
func (h *Host) Kill() error {
	if err := h.control("cgroup.kill", "1"); err != nil {
		return err
	}
	return h.await("populated 0")
}

func (h *Host) control(file, value string) error {
	if err := os.WriteFile(filepath.Join(h.group, file), []byte(value), 0); err != nil {
		return fmt.Errorf("lab: %s: %w", h.Name, err)
	}
	return nil
}

// settle is far more than the kernel takes.
const settle = 20 * time.Second

// await waits for a line of cgroup.events.
func (h *Host) await(line string) error {
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(h.group, "cgroup.events"))
		if err != nil {
			return fmt.Errorf("lab: %s: %w", h.Name, err)
		}
		if strings.Contains(string(b), line) {
			return nil
		}
	}
	return fmt.Errorf("lab: %s: not %q within %v", h.Name, line, settle)
}

// Close ends what still runs, and takes the cgroup away. The directory stays.
func (h *Host) Close() error {
	err := errors.Join(h.Thaw(), h.Kill())
	if e := unix.Rmdir(h.group); e != nil {
		err = errors.Join(err, fmt.Errorf("lab: %s: %w", h.Name, e))
	}
	return err
}
