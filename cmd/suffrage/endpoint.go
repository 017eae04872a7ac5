package main

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/client_golang/prometheus"

	"suffrage/config"
	"suffrage/endpoint"
	"suffrage/identity"
)

// endpoint leads this host's clients of etcd to a voter; nil where there is none.
func (s Settings) endpoint(roster *identity.Roster, reg prometheus.Registerer, log *slog.Logger) (*endpoint.Endpoint, error) {
	metrics, err := endpoint.NewMetrics(reg)
	if err != nil {
		return nil, fmt.Errorf("agent: metrics: %w", err)
	}
	if s.Endpoint.Listen == "" {
		return nil, nil
	}
	if err := config.Under("etcd", s.Etcd.Validate()); err != nil {
		return nil, usage(err)
	}
	self, _ := roster.ByName(s.Host)
	o := endpoint.Options{Config: s.Endpoint, Address: self.Address, Etcd: s.Etcd, Metrics: metrics, Log: log}
	if s.Etcd.Cert != "" { // where etcd asks for one, the endpoint does
		at := func(name string) string { return filepath.Join(s.Dir, name) }
		o.TLS = endpoint.TLS{CA: at("ca.crt"), Cert: at("host.crt"), Key: s.keyFile(), Client: at(datastoreCert)}
	}
	if o.Socket, err = socket(s.Endpoint.Listen); err != nil {
		return nil, err
	}
	return endpoint.New(o)
}

// socket is the listener that systemd holds for the endpoint, nil for none.
func socket(listen string) (net.Listener, error) {
	held, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("agent: sockets of systemd: %w", err)
	}
	for _, l := range held {
		if l == nil || l.Addr().String() != listen {
			return nil, usage(fmt.Errorf("agent: systemd hands over a socket that is not on endpoint.listen (%s): correct ListenStream= of suffrage-endpoint.socket, or the setting", listen))
		}
	}
	if len(held) == 0 {
		return nil, nil
	}
	return held[0], nil
}
