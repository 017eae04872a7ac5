package probes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"tailscale.com/client/local"
	"tailscale.com/ipn/ipnstate"

	"suffrage/fitness"
)

// maxStatus bounds what the overlay's daemon may answer: about 2 KiB per device
// of a tailnet.
const maxStatus = 32 << 20

// ErrNoOverlay says that no Tailscale daemon runs here.
var ErrNoOverlay = errors.New("probes: overlay: no Tailscale here")

// ReadPaths asks the Tailscale daemon behind a socket how each peer is reached.
// peers are mesh addresses by name. A peer with which no traffic flows has no
// path; so has one that is not in the tailnet. The context bounds the time.
func ReadPaths(ctx context.Context, socket string, peers map[string]netip.Addr) ([]fitness.Path, error) {
	if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there", ErrNoOverlay, socket)
	}
	client := &local.Client{
		Socket: socket, UseSocketOnly: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				return nil, err
			}
			return &limitedConn{conn, maxStatus}, nil
		},
	}
	st, err := client.Status(ctx)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("probes: overlay: %s: permission denied: let the agent's user open it", socket)
	}
	if err != nil {
		return nil, fmt.Errorf("probes: overlay: ask Tailscale at %s: %w", socket, err)
	}
	if st.BackendState != "Running" {
		return nil, fmt.Errorf("probes: overlay: Tailscale at %s is in state %.40q: see 'tailscale status'", socket, st.BackendState)
	}
	return pathsOf(st, peers), nil
}

func pathsOf(st *ipnstate.Status, peers map[string]netip.Addr) []fitness.Path {
	byAddr := make(map[netip.Addr]*ipnstate.PeerStatus, len(st.Peer))
	for _, p := range st.Peer {
		for _, a := range p.TailscaleIPs {
			byAddr[a] = p
		}
	}
	var out []fitness.Path
	for name, addr := range peers {
		if p := byAddr[addr]; p != nil && p.Active {
			out = append(out, pathOf(name, p))
		}
	}
	slices.SortFunc(out, func(a, b fitness.Path) int { return strings.Compare(a.Peer, b.Peer) })
	return out
}

// pathOf reads how an active peer is reached. Relay names the peer's home relay
// whether it is used or not, so it does not mean "relayed" by itself; a peer
// relay is another device of the tailnet that forwards UDP, and counts as
// direct here because it lacks what makes relays bad (TCP in TCP, shared with
// the world).
func pathOf(name string, p *ipnstate.PeerStatus) fitness.Path {
	switch {
	case p.CurAddr != "":
		return fitness.Path{Peer: name, Kind: "direct", Via: p.CurAddr}
	case p.PeerRelay != "":
		return fitness.Path{Peer: name, Kind: "direct", Via: "peer relay " + p.PeerRelay}
	}
	return fitness.Path{Peer: name, Kind: "relayed", Via: p.Relay}
}

// limitedConn ends a connection that sends more than its reader wants.
type limitedConn struct {
	net.Conn
	left int
}

func (c *limitedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxStatus)
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}
