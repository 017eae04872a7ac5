package probes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
)

// maxStatus bounds what the overlay's daemon may answer: about 2 KiB per device
// of a tailnet.
const maxStatus = 32 << 20

// ErrNoOverlay says that no Tailscale daemon runs here.
var ErrNoOverlay = errors.New("probes: overlay: no Tailscale here")

// Overlay is what Tailscale's daemon tells of this host's place in the tailnet.
type Overlay struct {
	// Paths are sorted by peer. A peer with which no traffic flows has none; so has
	// one that is not in the tailnet, or away.
	Paths []fitness.Path
	// KeyExpires is when this host leaves the tailnet unless its owner logs in
	// again; zero for never.
	KeyExpires time.Time
}

// tailscaleStatus is the part that is read of what the daemon's LocalAPI calls
// its status (ipnstate.Status in Tailscale's source).
type tailscaleStatus struct {
	BackendState string
	Self         struct{ KeyExpiry *time.Time }
	Peer         map[string]tailscalePeer
}

type tailscalePeer struct {
	TailscaleIPs []netip.Addr
	// CurAddr is where the peer is reached directly, PeerRelay a device of the
	// tailnet that forwards to it. Relay is the peer's home relay, used or not.
	CurAddr, PeerRelay, Relay string
	// Active: something was sent to it in the last two minutes. Online: it is
	// connected to the control server.
	Active, Online bool
}

// ReadOverlay asks the Tailscale daemon behind a socket how each peer is reached.
// peers are mesh addresses by name. The context bounds the time.
func ReadOverlay(ctx context.Context, socket string, peers map[string]netip.Addr) (Overlay, error) {
	if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
		return Overlay{}, fmt.Errorf("%w: %s is not there", ErrNoOverlay, socket)
	}
	st, err := askTailscale(ctx, socket)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Overlay{}, fmt.Errorf("probes: overlay: %s: permission denied: let the agent's user open it", socket)
	case err != nil:
		return Overlay{}, fmt.Errorf("probes: overlay: ask Tailscale at %s: %w", socket, err)
	case st.BackendState != "Running":
		return Overlay{}, fmt.Errorf("probes: overlay: Tailscale at %s is in state %.40q: see 'tailscale status'", socket, st.BackendState)
	}
	o := Overlay{Paths: pathsOf(st, peers)}
	if e := st.Self.KeyExpiry; e != nil {
		o.KeyExpires = *e
	}
	return o, nil
}

// askTailscale gets the status: one request on one connection, whose other end
// may send anything, or nothing.
func askTailscale(ctx context.Context, socket string) (st tailscaleStatus, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return st, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = ctx.Err() // not that its connection was closed
		}
	}()
	// The daemon refuses any other Host: a page in a browser may not ask it.
	request, err := http.NewRequest(http.MethodGet, "http://local-tailscaled.sock/localapi/v0/status", nil)
	if err != nil {
		return st, err
	}
	request.Close = true
	if err := request.Write(conn); err != nil {
		return st, err
	}
	limited := &limitedReader{conn, maxStatus}
	answer, err := http.ReadResponse(bufio.NewReader(limited), request)
	if err != nil {
		return st, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden:
		return st, fs.ErrPermission
	default:
		return st, fmt.Errorf("it answers %.60q", answer.Status)
	}
	return st, json.NewDecoder(answer.Body).Decode(&st)
}

func pathsOf(st tailscaleStatus, peers map[string]netip.Addr) []fitness.Path {
	byAddr := make(map[netip.Addr]tailscalePeer, len(st.Peer))
	for _, p := range st.Peer {
		for _, a := range p.TailscaleIPs {
			byAddr[a] = p
		}
	}
	var out []fitness.Path
	for name, addr := range peers {
		if p, ok := pathOf(byAddr[addr]); ok {
			p.Peer = name
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b fitness.Path) int { return strings.Compare(a.Peer, b.Peer) })
	return out
}

// pathOf reads how a peer is reached, if it is. Relay names the peer's home relay
// whether it is used or not, so it does not mean "relayed" by itself; what is sent
// to a peer that is away goes to its relay too, and is no path. A peer relay is
// another device of the tailnet that forwards UDP, and counts as direct here
// because it lacks what makes relays bad (TCP in TCP, shared with the world).
func pathOf(p tailscalePeer) (fitness.Path, bool) {
	switch {
	case !p.Active:
		return fitness.Path{}, false
	case p.CurAddr != "":
		return fitness.Path{Kind: "direct", Via: p.CurAddr}, true
	case p.PeerRelay != "":
		return fitness.Path{Kind: "direct", Via: "peer relay " + p.PeerRelay}, true
	}
	return fitness.Path{Kind: "relayed", Via: p.Relay}, p.Online
}

// limitedReader is an error once more was sent than its reader wants.
type limitedReader struct {
	from io.Reader
	left int
}

func (r *limitedReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxStatus)
	}
	n, err := r.from.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}
