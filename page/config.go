package page

import (
	"net/netip"
	"strconv"

	"suffrage/config"
)

// Config is the section controller.page of the settings.
type Config struct {
	// Listen is an IP address and a port; empty: no page. On loopback it is plain
	// HTTP; anywhere else mutual TLS with the keys of the roster.
	Listen string `yaml:"listen"`
	// Writes lets whoever reaches the page say pin, eligible, pause and swap, with any
	// name: on loopback that is everybody on this host.
	Writes bool `yaml:"writes"`
}

// DefaultConfig has the page on loopback.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:7403"} }

// Validate gives a config.Problem per key.
func (c Config) Validate() error {
	if c.Listen == "" {
		return nil
	}
	a, err := netip.ParseAddrPort(c.Listen)
	if err != nil || a.Addr().IsUnspecified() {
		return config.Problem{Key: "listen", Found: strconv.Quote(c.Listen),
			Allowed: "one IP address of this host and a port, such as 127.0.0.1:7403, or nothing for no page"}
	}
	return nil
}

// loopback reports whether only this machine reaches the page.
func (c Config) loopback() bool {
	a, err := netip.ParseAddrPort(c.Listen)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
