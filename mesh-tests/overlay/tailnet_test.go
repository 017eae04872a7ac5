package overlay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/demo"
	"suffrage/mesh-tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// far is a deadline beyond what a busy machine takes for anything here.
const far = 4 * time.Minute

// tailnet is some hosts h1, h2 and so on with Tailscale, and one more that has
// what they need of the world.
type tailnet struct {
	t        *testing.T
	programs string // their directory
	dir      string
	network  *lab.Network
	hosts    []*lab.Host
}

func newTailnet(t *testing.T, hosts int) *tailnet {
	t.Helper()
	lab.Need(t)
	n := &tailnet{t: t, programs: os.Getenv("SUFFRAGE_TAILSCALE")}
	if n.programs == "" {
		t.Skip("SKIPPED, nothing was proven: SUFFRAGE_TAILSCALE is not set: make tailscale-test")
	}
	var err error
	if n.dir, err = os.MkdirTemp("", ""); err != nil { // a short path, for its sockets
		t.Fatal(err)
	}
	// Users other than root have to come to the socket, as on a real host.
	n.do(os.Chmod(os.TempDir(), 0o711))
	n.do(os.Chmod(n.dir, 0o711))
	if n.network, err = lab.NewNetwork(hosts + 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.do(n.network.Close()) })
	supervisor := demo.NewSupervisor()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- supervisor.Run(ctx) }()
	t.Cleanup(func() { stop(); n.do(<-ended) })
	for i := range hosts + 1 {
		h, err := lab.NewHost(n.network, supervisor, i+1, filepath.Join(n.dir, "m"+string(rune('1'+i))))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.do(h.Close()) })
		n.do(os.Chmod(h.Dir, 0o711))
		n.hosts = append(n.hosts, h)
	}
	world := n.hosts[hosts]
	n.hosts = n.hosts[:hosts]
	at := lab.Address(hosts + 1).String()
	n.start(world, "control", filepath.Join(n.programs, "tailscale-lab"), "serve", at)
	for _, h := range n.hosts {
		n.join(h, "http://"+at+":9911")
	}
	return n
}

// host is the one with this name.
func (n *tailnet) host(name string) *lab.Host {
	return n.hosts[slices.IndexFunc(n.hosts, func(h *lab.Host) bool { return h.Name == name })]
}

// join starts tailscaled on a host and logs it in, as `tailscale up` does.
func (n *tailnet) join(h *lab.Host, server string) {
	n.t.Helper()
	// Nothing of it looks for the world's networks.
	n.start(h, "tailscaled", "env", "TS_DISABLE_PORTMAPPER=1", "TS_PANIC_IF_HIT_MAIN_CONTROL=1",
		filepath.Join(n.programs, "tailscaled"), "--no-logs-no-support", "--state=mem:", "--statedir="+h.Dir,
		"--socket="+n.socket(h), "--port=41641", "--tun=tailscale0")
	n.wait(h.Name+" is in the tailnet", func() (string, bool) {
		_, err := n.tailscale(h, "up", "--login-server="+server, "--hostname="+h.Name, "--accept-dns=false", "--netfilter-mode=off", "--timeout=20s")
		return said(err), err == nil
	})
}

// socket is where a host's tailscaled answers.
func (n *tailnet) socket(h *lab.Host) string { return filepath.Join(h.Dir, "tailscaled.sock") }

// tailscale runs the owner's command of this name, which is in tailscaled's file.
func (n *tailnet) tailscale(h *lab.Host, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	return h.Run(ctx, append([]string{"env", "TS_BE_CLI=1", filepath.Join(n.programs, "tailscaled"), "--socket=" + n.socket(h)}, args...)...)
}

// address is what Tailscale gave the host.
func (n *tailnet) address(h *lab.Host) netip.Addr {
	n.t.Helper()
	out, err := n.tailscale(h, "ip", "-4")
	n.do(err)
	a, err := netip.ParseAddr(strings.TrimSpace(out))
	n.do(err)
	return a
}

// peer is what the daemon says of another host.
type peer struct {
	HostName, CurAddr, Relay string
	Active                   bool
}

// calls waits until the daemon of a host says that of another one.
func (n *tailnet) calls(h, other *lab.Host, what string, is func(peer) bool) {
	n.t.Helper()
	n.wait("Tailscale itself: "+what, func() (string, bool) {
		out, err := n.tailscale(h, "status", "--json")
		var st struct{ Peer map[string]peer }
		if err == nil {
			err = json.Unmarshal([]byte(out), &st)
		}
		for _, p := range st.Peer {
			if p.HostName == other.Name && is(p) {
				return "", true
			}
		}
		return fmt.Sprintf("%+v %v", st, err), false
	})
}

// udp lets UDP between a host and the others through, or not.
func (n *tailnet) udp(h *lab.Host, how string) {
	n.t.Helper()
	_, err := h.Run(n.t.Context(), filepath.Join(n.programs, "tailscale-lab"), how)
	n.do(err)
	n.t.Logf("%s  UDP on %s: %s", time.Now().Format("15:04:05"), h.Name, how)
}

func (n *tailnet) start(h *lab.Host, name string, args ...string) {
	n.t.Helper()
	_, err := h.Start(n.t.Context(), name, args...)
	n.do(err)
}

// do ends the test where the lab could not do what it was told.
func (n *tailnet) do(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// wait waits until something is so; is says what it saw.
func (n *tailnet) wait(what string, is func() (string, bool)) {
	n.t.Helper()
	for began := time.Now(); ; time.Sleep(300 * time.Millisecond) {
		saw, yes := is()
		if yes {
			n.t.Logf("%s  %s, after %.1f s", time.Now().Format("15:04:05"), what, time.Since(began).Seconds())
			return
		}
		if time.Since(began) > far {
			n.logs()
			n.t.Fatalf("never: %s; last seen: %s", what, saw)
		}
	}
}

// logs shows the end of every log, for whoever looks for the reason.
func (n *tailnet) logs() {
	files, _ := filepath.Glob(filepath.Join(n.dir, "*", "*.log")) // the pattern is our own
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			n.t.Logf("%s ends:\n%s", f, b[max(0, len(b)-4000):])
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
