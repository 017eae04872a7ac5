package main

import (
	"fmt"
	"log/slog"
	"path/filepath"

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
	return endpoint.New(o)
}
