package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"suffrage/config"
	"suffrage/fitness"
	"suffrage/membership/host"
)

// Config is the section "agent" of the settings file.
type Config struct {
	// Listen is the address and port of the API and the pings. Empty means the
	// host's own address and port in the roster, which is where its peers look.
	Listen string `yaml:"listen"`
	// Metrics is where /metrics, /livez and /readyz are served, without TLS:
	// keep it on loopback, or behind something that asks who is there.
	Metrics string `yaml:"metrics"`
	// Period is the time between two samples of a signal, 10ms to 1m. A window is
	// 100 samples and a plan needs two windows, so 3s means ten minutes. Equal on
	// all hosts.
	Period fitness.Duration `yaml:"period"`
	// PingTimeout is when a ping counts as lost: up to 20 periods. It must be
	// well above a tenth of the election timeout, or slow and lost are the same.
	PingTimeout fitness.Duration `yaml:"ping_timeout"`
	// Dir is where the disk probes write, below 3 MiB. It must lie on the
	// datastore's filesystem, or they measure another disk. Empty means
	// the directory "agent" under data.
	Dir string `yaml:"dir"`
	// MemberMetrics is the metrics page of the etcd member on this host, when it
	// has one. Where nothing listens, the host is a standby.
	MemberMetrics string `yaml:"member_metrics"`
	// Zone is the failure domain: hosts of one zone fail together (a room, a
	// power strip, a provider's zone). Empty means unknown.
	Zone string `yaml:"zone"`
	// TailscaleSocket is where Tailscale's daemon answers, to learn whether a
	// peer is reached directly or through a relay. A missing one breaks nothing.
	TailscaleSocket string `yaml:"tailscale_socket"`
	// Unit is what starts and stops this host's etcd server: the name of a systemd
	// service, or the absolute path of a unix socket that answers as docs/orders.md
	// says. Empty: the agent runs no server, and refuses all orders.
	Unit string `yaml:"unit"`
}

// DefaultConfig is what an empty section means.
func DefaultConfig() Config {
	return Config{
		Metrics:         "127.0.0.1:7401",
		Period:          fitness.Duration(3 * time.Second),
		PingTimeout:     fitness.Duration(2500 * time.Millisecond),
		MemberMetrics:   "http://127.0.0.1:2381/metrics",
		TailscaleSocket: "/var/run/tailscale/tailscaled.sock",
	}
}

const (
	minPeriod = 10 * time.Millisecond
	maxPeriod = time.Minute
	maxZone   = 64 // bytes
	maxSocket = 107
)

// Validate gives a config.Problem per key.
func (c Config) Validate() error {
	var errs []error
	bad := func(key, found, allowed string) {
		errs = append(errs, config.Problem{Key: key, Found: found, Allowed: allowed})
	}
	if c.Listen != "" {
		if _, err := netip.ParseAddrPort(c.Listen); err != nil {
			bad("listen", strconv.Quote(c.Listen), "an IP address and a port, such as 100.64.0.1:7400, or nothing for the roster's")
		}
	}
	if _, port, err := net.SplitHostPort(c.Metrics); err != nil || port == "" {
		bad("metrics", strconv.Quote(c.Metrics), "an address and a port, such as 127.0.0.1:7401")
	}
	if p := c.Period.Std(); p < minPeriod || p > maxPeriod {
		bad("period", p.String(), fmt.Sprintf("%v to %v", minPeriod, maxPeriod))
	} else if t := c.PingTimeout.Std(); t < minPeriod || t > maxPeriod || t > 20*p {
		// 20 pings under way are well below what a Pinger takes.
		bad("ping_timeout", t.String(), fmt.Sprintf("%v to %v: at most 20 times agent.period (%v)", minPeriod, min(maxPeriod, 20*p), p))
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		bad("dir", strconv.Quote(c.Dir), "an absolute path on the datastore's filesystem")
	}
	if u, err := url.Parse(c.MemberMetrics); err != nil || u.Scheme != "http" || u.Host == "" {
		bad("member_metrics", strconv.Quote(c.MemberMetrics), "a URL such as http://127.0.0.1:2381/metrics")
	}
	if !printable(c.Zone, maxZone) {
		bad("zone", fmt.Sprintf("%.80q", c.Zone), fmt.Sprintf("up to %d printable ASCII characters", maxZone))
	}
	if !filepath.IsAbs(c.TailscaleSocket) {
		bad("tailscale_socket", strconv.Quote(c.TailscaleSocket), "an absolute path")
	}
	if c.Unit != "" && !host.SystemdUnit.MatchString(c.Unit) && (!filepath.IsAbs(c.Unit) || len(c.Unit) > maxSocket) {
		bad("unit", fmt.Sprintf("%.300q", c.Unit), fmt.Sprintf("nothing, a systemd service such as suffrage-member.service, or a unix socket's absolute path of at most %d bytes", maxSocket))
	}
	return errors.Join(errs...)
}

func printable(s string, most int) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= most
}
