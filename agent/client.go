package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
)

// maxReport bounds a report, in bytes: the largest honest one, 64 peers with
// full series, has under 6 MiB.
const maxReport = 8 << 20

// Client pulls reports from agents, over one HTTP/2 connection per host that is
// kept open. Safe for concurrent use; a call to one host waits for no other.
type Client struct {
	key       *identity.Key
	roster    func() *identity.Roster
	transport *http.Transport
}

// NewClient makes a client that speaks with key to the hosts that roster
// returns at the moment of each call. Close it when done.
func NewClient(key *identity.Key, roster func() *identity.Roster) *Client {
	c := &Client{key: key, roster: roster}
	c.transport = &http.Transport{
		DialTLSContext:         c.dial,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
		DisableCompression:     true, // or a small reply could become a large one
		IdleConnTimeout:        5 * time.Minute,
		MaxResponseHeaderBytes: maxHeader,
	}
	c.transport.Protocols.SetHTTP2(true)
	return c
}

// Close ends all connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Pull gets a host's report, with samples whose sequence number is above after.
// The context bounds the time. Errors name the host and what would help; a host
// with another key than the roster's is an *identity.WrongKeyError, one that
// does not know this host's key an *identity.RefusedError, and a reply that
// cannot be true an *InvalidReportError.
func (c *Client) Pull(ctx context.Context, host string, after uint64) (fitness.Report, error) {
	roster := c.roster()
	h, ok := roster.ByName(host)
	if !ok {
		return fitness.Report{}, fmt.Errorf("agent: pull report of %s: the roster has no host of that name", host)
	}
	r, err := c.pull(ctx, h, after)
	if err != nil {
		return fitness.Report{}, fmt.Errorf("agent: pull report of host %s at %s: %w", h.Name, h.AddrPort(), c.explain(ctx, err, h))
	}
	if err := validate(&r, h.Name, roster, after); err != nil {
		return fitness.Report{}, fmt.Errorf("agent: pull report of host %s at %s: %w", h.Name, h.AddrPort(), err)
	}
	return r, nil
}

func (c *Client) pull(ctx context.Context, h identity.RosterHost, after uint64) (r fitness.Report, err error) {
	u := url.URL{Scheme: "https", Host: target(h), Path: "/v1/report"}
	if after > 0 {
		u.RawQuery = "after=" + strconv.FormatUint(after, 10)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return r, err
	}
	// Without http.Client there are no redirects and no cookies to think of.
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
		return r, fmt.Errorf("it answers %d: %s", resp.StatusCode, clip(strings.TrimSpace(string(b))))
	}
	body := &io.LimitedReader{R: resp.Body, N: maxReport + 1}
	dec := json.NewDecoder(body)
	if err := dec.Decode(&r); err != nil {
		if body.N <= 0 {
			err = &InvalidReportError{h.Name, fmt.Sprintf("longer than %d bytes", maxReport)}
		} else if ctx.Err() == nil {
			err = &InvalidReportError{h.Name, clip(err.Error())}
		}
		return r, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, &InvalidReportError{h.Name, "more after its end"}
	}
	return r, nil
}

// target names a host and its place: another address or key is another
// connection, although nothing listens to this name.
func target(h identity.RosterHost) string {
	key := strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(strings.TrimPrefix(h.Fingerprint.String(), "SHA256:"))
	return fmt.Sprintf("%s.%s:%d", h.Name, key, h.Port)
}

// dial connects to the host that target named.
func (c *Client) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	name, _, _ := strings.Cut(addr, ".")
	h, ok := c.roster().ByName(name)
	if !ok || target(h) != addr {
		return nil, errors.New("the roster changed meanwhile: try again")
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.AddrPort().String())
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, identity.ClientTLS(c.key, h, "h2"))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		raw.Close()
		return nil, fmt.Errorf("it does not speak HTTP/2 (%q): is the port an agent's?", got)
	}
	return conn, nil
}

// firstRead connects anew and gives the error of the first read.
func (c *Client) firstRead(ctx context.Context, h identity.RosterHost) error {
	conn, err := c.dial(ctx, "tcp", target(h))
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_, err = conn.Read(make([]byte, 1))
	return err
}

// explain says what would help, where an error does not say so by itself.
func (c *Client) explain(ctx context.Context, err error, h identity.RosterHost) error {
	if strings.Contains(err.Error(), "client conn could not be established") || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		// In TLS 1.3 the alert by which the host refuses this key comes after the
		// handshake. HTTP/2 hides it where it is faster than the request, and the
		// request runs into a closed connection where it is slower.
		if found := c.firstRead(ctx, h); found != nil {
			err = found
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		if strings.Contains(op.Err.Error(), "no application protocol") {
			return fmt.Errorf("%w: is the port an agent's?", op)
		}
		return identity.Explain(op, c.key, h)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && ctx.Err() == nil {
		return fmt.Errorf("%w: is the agent running there, and the mesh up?", op.Err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer in time: is the host awake, the agent running, the mesh up? %w", context.DeadlineExceeded)
	}
	return err
}
