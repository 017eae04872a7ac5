package k3s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"suffrage/membership/host"
)

// Host is one machine with k3s, and the unit that runs it: a host.Unit.
type Host struct {
	Name    string
	Address netip.Addr
	Dir     string // of all its files
	Env     []string
	// Enter is what a command that runs on this host starts with; nothing without
	// Options.Namespaces.
	Enter []string
	// Command is server, or agent; it counts at the next start.
	Command string
	// Restart starts k3s again this long after it ended by itself, as its unit's
	// Restart=always does; 0 never.
	Restart time.Duration
	// Fence is Suffrage's data directory, whose fence a start respects; "" is none.
	Fence string

	program []string // and what comes before the command

	mu     sync.Mutex
	cmd    *exec.Cmd // the newest
	ended  chan struct{}
	wanted bool // it was started and not stopped
	starts int
}

// DataDir is K3s's data directory.
func (h *Host) DataDir() string { return filepath.Join(h.Dir, "data") }

// Datastore is where etcd's data is.
func (h *Host) Datastore() string { return filepath.Join(h.DataDir(), "server", "db", "etcd") }

// Config is config.yaml.
func (h *Host) Config() string { return filepath.Join(h.Dir, "rancher", "config.yaml") }

// NodePassword is the file with the password of the host's Node: the double's. K3s
// has it in /etc/rancher/node, which hosts on one machine share.
func (h *Host) NodePassword() string { return filepath.Join(h.Dir, "rancher", "node", "password") }

// DropIns is the directory of the drop-ins.
func (h *Host) DropIns() string { return h.Config() + ".d" }

// written is the administrator's kubeconfig as a server with an API server writes
// it, for loopback.
func (h *Host) written() string { return filepath.Join(h.Dir, "k3s.yaml") }

// Kubeconfig is the administrator's for everywhere. It is an error where this host
// has not run an API server yet.
func (h *Host) Kubeconfig() (string, error) {
	text, err := os.ReadFile(h.written())
	if err != nil {
		return "", fmt.Errorf("k3s: kubeconfig of %s: %w", h.Name, err)
	}
	file := filepath.Join(h.Dir, "admin.kubeconfig")
	return file, os.WriteFile(file, bytes.ReplaceAll(text, []byte("https://127.0.0.1:6443"), []byte(h.ServerURL())), 0o600)
}

// Log is what k3s writes.
func (h *Host) Log() string { return filepath.Join(h.Dir, "k3s.log") }

// ClientURL is etcd's on the host's address.
func (h *Host) ClientURL() string { return "https://" + netip.AddrPortFrom(h.Address, 2379).String() }

// ServerURL is where others join.
func (h *Host) ServerURL() string { return "https://" + netip.AddrPortFrom(h.Address, 6443).String() }

// Certificate gives etcd's authority, and a client's certificate and key.
func (h *Host) Certificate() (ca, cert, key string) {
	dir := filepath.Join(h.DataDir(), "server", "tls", "etcd")
	return filepath.Join(dir, "server-ca.crt"), filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
}

// DropIn writes one, or takes it away where content is empty.
func (h *Host) DropIn(name, content string) error {
	file := filepath.Join(h.DropIns(), name)
	if content == "" {
		if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(h.DropIns(), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o600)
}

// Start starts k3s unless it runs, and does not wait for it to be ready.
func (h *Host) Start(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Fence != "" {
		if err := host.Fenced(h.Fence); err != nil {
			return err
		}
	}
	h.wanted = true
	if h.running() {
		return nil
	}
	return h.launch()
}

func (h *Host) running() bool {
	if h.cmd == nil {
		return false
	}
	select {
	case <-h.ended:
		return false
	default:
		return true
	}
}

func (h *Host) launch() error {
	log, err := os.OpenFile(h.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(h.program[0], append(slices.Clone(h.program[1:]), h.Command)...)
	cmd.Env = append(append(os.Environ(), "K3S_CONFIG_FILE="+h.Config()), h.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	h.starts++
	fmt.Fprintf(log, "--- start %d\n", h.starts)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("k3s: start %s: %w", h.Name, err)
	}
	ended := make(chan struct{})
	h.cmd, h.ended = cmd, ended
	go h.wait(cmd, ended)
	return nil
}

// wait ends what the process left, and does what its unit does.
func (h *Host) wait(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	close(ended)
	h.mu.Lock()
	again := h.wanted && h.Restart != 0
	h.mu.Unlock()
	if !again {
		return
	}
	time.Sleep(h.Restart)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wanted && !h.running() && (h.Fence == "" || host.Fenced(h.Fence) == nil) {
		_ = h.launch()
	}
}

// Stop ends k3s and waits for it.
func (h *Host) Stop(ctx context.Context) error { return h.end(ctx, syscall.SIGTERM) }

// Kill ends it as if the machine had lost power.
func (h *Host) Kill() error { return h.end(context.Background(), syscall.SIGKILL) }

func (h *Host) end(ctx context.Context, s syscall.Signal) error {
	h.mu.Lock()
	h.wanted = false
	cmd, ended, running := h.cmd, h.ended, h.running()
	h.mu.Unlock()
	if !running {
		return nil
	}
	if err := cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("k3s: stop %s: %w", h.Name, ctx.Err())
	}
}

// StartAgain ends k3s and starts it again, unless the fence would keep it down.
func (h *Host) StartAgain(ctx context.Context) error {
	if h.Fence != "" {
		if err := host.Fenced(h.Fence); err != nil {
			return err
		}
	}
	if err := h.Stop(ctx); err != nil {
		return err
	}
	return h.Start(ctx)
}

// Running: the process is there.
func (h *Host) Running() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running()
}

// State is Running as a host.Unit tells it.
func (h *Host) State(context.Context) (host.UnitState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return host.UnitState{Running: h.running(), Starts: h.starts, Invocation: strconv.Itoa(h.starts)}, nil
}

// ExitCode is the newest process's; -1 while it runs, and when a signal ended it.
func (h *Host) ExitCode() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd == nil || h.running() {
		return -1
	}
	return h.cmd.ProcessState.ExitCode()
}
