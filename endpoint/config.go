package endpoint

import (
	"errors"
	"net/netip"
	"strconv"

	"suffrage/config"
)

// Config is the section "endpoint" of the settings file.
type Config struct {
	// Listen is where clients of this host find the datastore, such as
	// 127.0.0.1:2379. It has to be a loopback address, and nothing else may have
	// it: a member that listens on 127.0.0.1 or on all addresses, or K3s's own etcd.
	// Empty: there is no local endpoint.
	Listen string `yaml:"listen"`
}

// DefaultConfig has no endpoint: a port that leads into etcd is opened where
// somebody asks for it.
func DefaultConfig() Config { return Config{} }

// Validate gives a config.Problem per key.
func (c Config) Validate() error {
	if c.Listen == "" {
		return nil
	}
	at, err := netip.ParseAddrPort(c.Listen)
	if err != nil || !at.Addr().IsLoopback() || at.Port() == 0 {
		return errors.Join(config.Problem{Key: "listen", Found: strconv.Quote(c.Listen), Allowed: "a loopback address and a port, such as 127.0.0.1:2379, or nothing for no endpoint"})
	}
	return nil
}
