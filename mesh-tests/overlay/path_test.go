package overlay

import (
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"suffrage/fitness"
	"suffrage/mesh-tests/lab"
	"suffrage/probes"
)

// Two hosts reach each other directly; UDP is blocked on one of them, so only the
// relay is left; it is let through again. Agents, status, explain, metrics and the
// log say each time what is, and what was before.
func TestPathChanges(t *testing.T) {
	program := os.Getenv("SUFFRAGE_BIN")
	if program == "" {
		t.Skip("SKIPPED, nothing was proven: SUFFRAGE_BIN is not set: make tailscale-test")
	}
	n := newTailnet(t, 2)
	f := n.install(program)
	h1, h2 := n.hosts[0], n.hosts[1]

	direct := f.until("both paths are direct", func(p fitness.Path) bool { return p.Kind == "direct" })
	for way, want := range map[string]int{"h1 h2": 2, "h2 h1": 1} {
		if got := direct[way].Via; got != netip.AddrPortFrom(lab.Address(want), 41641).String() {
			t.Errorf("%s is direct at %q", way, got)
		}
	}
	// The relay has a name all the time: it is the peer's home, used or not.
	n.calls(h1, h2, "direct, and its relay has a name", func(p peer) bool { return p.Active && p.CurAddr != "" && p.Relay == "lab1" })
	f.says("paths:", false, "status")
	f.nobodyReads(h1, h2)

	blocked := time.Now()
	n.udp(h1, "block")
	relayed := f.until("both paths are relayed", func(p fitness.Path) bool {
		return p.Kind == "relayed" && p.Via == "lab1" && p.Before == "direct"
	})
	for way, p := range relayed {
		if at := time.UnixMicro(p.Since); at.Before(blocked) || at.After(time.Now()) {
			t.Errorf("%s is relayed since %s; UDP was blocked at %s", way, at, blocked)
		}
	}
	n.calls(h1, h2, "no address, and the same relay", func(p peer) bool { return p.Active && p.CurAddr == "" && p.Relay == "lab1" })
	f.says("h1 and h2: relayed through lab1, direct before, since ", true, "status")
	f.says("path      to h2 relayed through lab1, direct before, since ", true, "explain", "h1")
	f.counts(h1, `suffrage_agent_path_relayed{peer="h2"} 1`)
	if log := f.log(h1, "agent"); !strings.Contains(log, "path changed") {
		t.Errorf("the agent's log:\n%s", log)
	}

	n.udp(h1, "allow")
	f.until("both paths are direct again", func(p fitness.Path) bool { return p.Kind == "direct" && p.Before == "relayed" })
	f.says("path      to h2 direct at 10.77.0.2:41641, relayed before, since ", true, "explain", "h1")
	f.says("paths:", false, "status")
	f.counts(h1, `suffrage_agent_path_relayed{peer="h2"} 0`)
}

// nobodyReads asks h1's tailscaled as a user without any right, as the agent's is.
func (f *fleet) nobodyReads(h1, h2 *lab.Host) {
	f.t.Helper()
	type answer struct {
		probes.Overlay
		err error
	}
	answers := make(chan answer)
	peers := map[string]netip.Addr{"h2": f.address(h2)}
	go func() {
		// Only this thread becomes nobody, and ends with the goroutine.
		runtime.LockOSThread()
		const nobody = 65534
		var a answer
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody); e != 0 {
			a.err = e
		} else if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
			a.err = e
		} else {
			a.Overlay, a.err = probes.ReadOverlay(f.t.Context(), f.socket(h1), peers)
		}
		answers <- a
	}()
	if a := <-answers; a.err != nil || len(a.Paths) != 1 || a.Paths[0].Peer != "h2" {
		f.t.Errorf("another user reads %+v: %v", a.Overlay, a.err)
	}
}
