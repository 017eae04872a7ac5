package standby

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// wanted is an address that the server listens on, and what it is for.
type wanted struct {
	use string
	at  netip.AddrPort
}

// wants are the addresses of this host's server.
func (h Host) wants() (out []wanted, err error) {
	if h.K3s != nil {
		for _, p := range []struct {
			use  string
			port uint16
		}{{"clients", 2379}, {"peers", 2380}} {
			out = append(out, wanted{p.use, netip.AddrPortFrom(h.Entry.Address, p.port)}, wanted{p.use, netip.AddrPortFrom(loopback, p.port)})
		}
		// K3s's own, on all addresses: --https-listen-port is 6443 (docs.k3s.io).
		out = append(out, wanted{"servers that join, and the API server", netip.AddrPortFrom(h.Entry.Address, 6443)})
		return append(out, wanted{"metrics", netip.AddrPortFrom(loopback, 2381)}), nil
	}
	for _, u := range []struct{ use, url string }{{"clients", h.Member.ListenClient}, {"peers", h.Member.ListenPeer}, {"metrics", h.Member.Metrics}} {
		if u.url == "" {
			continue
		}
		p, err := url.Parse(u.url)
		if err != nil {
			return nil, err
		}
		at, err := netip.ParseAddrPort(strings.Replace(p.Host, "localhost", "127.0.0.1", 1))
		if err != nil {
			return nil, err
		}
		out = append(out, wanted{u.use, at})
	}
	return out, nil
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// ports looks at who listens where the server will: nobody, or the server. It
// tries none of them: a port that is tried is in the way of a server that starts.
func (h Host) ports(ctx context.Context) []Check {
	const name = "port"
	if c, is := h.unread(name); is {
		return []Check{c}
	}
	wants, err := h.wants()
	if err != nil {
		return []Check{unknown(name, err)}
	}
	listening, err := h.listeners() // before what runs: a server that starts now is no stranger
	if err != nil {
		return []Check{unknown(name, err)}
	}
	running, pid, err := h.runs(ctx)
	var out []Check
	for _, w := range wants {
		out = append(out, h.port(w, listening, running, pid, err).of(w.at.String()))
	}
	return out
}

func (h Host) port(w wanted, listening []listener, running bool, pid uint32, err error) Check {
	const name = "port"
	i := slices.IndexFunc(listening, func(l listener) bool { return l.takes(w.at) })
	switch {
	case i < 0:
		return ok(name, "free, for "+w.use)
	case err != nil:
		return unknown(name, fmt.Errorf("in use, and whether the server runs is not known: %w", err))
	case !running:
		return wrong(name, "another process than this host's server listens there, at "+listening[i].at.String(), fmt.Sprintf("ss -ltnp 'sport = :%d'", w.at.Port()))
	}
	mine, err := h.holds(pid, listening[i].inode)
	switch {
	case pid == 0, errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return ok(name, "in use, and the server runs (which process it is, root could tell)")
	case err != nil:
		return unknown(name, err)
	case !mine:
		return wrong(name, "the server runs, and another process listens there", fmt.Sprintf("ss -ltnp 'sport = :%d'", w.at.Port()))
	}
	return ok(name, "held by the server, for "+w.use)
}

// holds reports whether a process, or one that it has started, has this socket.
func (h Host) holds(pid uint32, inode string) (bool, error) {
	if pid == 0 {
		return false, nil
	}
	fds := h.at(fmt.Sprintf("/proc/%d/fd", pid))
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && to == "socket:["+inode+"]" {
			return true, nil
		}
	}
	return false, nil
}

// listener is a TCP socket that listens.
type listener struct {
	at    netip.AddrPort
	inode string
}

// takes reports whether nobody else can listen there.
func (l listener) takes(at netip.AddrPort) bool {
	return l.at.Port() == at.Port() && (l.at.Addr() == at.Addr() || l.at.Addr().IsUnspecified() || at.Addr().IsUnspecified())
}

// maxSockets bounds a table of sockets, in bytes: 150 per connection.
const maxSockets = 64 << 20

func (h Host) listeners() (out []listener, err error) {
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(h.at("/proc/self/net/" + name))
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue // a kernel without it
		}
		if err != nil {
			return nil, err
		}
		more, err := parseListeners(io.LimitReader(f, maxSockets))
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("/proc/self/net/%s: %w", name, err)
		}
		out = append(out, more...)
	}
	return out, nil
}

// listens is TCP_LISTEN (linux/include/net/tcp_states.h).
const listens = "0A"

// parseListeners reads a table as proc(5) has it.
func parseListeners(r io.Reader) (out []listener, err error) {
	lines := bufio.NewScanner(r)
	for first := true; lines.Scan(); first = false {
		f := strings.Fields(lines.Text())
		if first || len(f) < 10 || f[3] != listens {
			continue
		}
		at, err := parseSocket(f[1])
		if err != nil {
			return nil, err
		}
		out = append(out, listener{at, f[9]})
	}
	return out, lines.Err()
}

// parseSocket reads "0100007F:094B": words of 32 bits as this machine has them in
// memory, all of ours with the lowest byte first.
func parseSocket(s string) (netip.AddrPort, error) {
	address, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(address)
	if err == nil && len(b) != 4 && len(b) != 16 {
		err = errors.New("no address")
	}
	n, perr := strconv.ParseUint(port, 16, 16)
	if err := errors.Join(err, perr); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%.60q: %w", s, err)
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), nil
}
