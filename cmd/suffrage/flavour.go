package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"suffrage/config"
	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/host"
)

// The flavours: who runs etcd.
const (
	ownEtcd = "etcd"
	k3s     = membership.K3s
)

// K3sSettings say where K3s is on this host.
type K3sSettings struct {
	// DataDir is K3s's --data-dir, where its etcd's datastore and certificates are.
	DataDir string `yaml:"data_dir"`
	// ConfigDir is where K3s reads drop-ins of its settings; one is written there.
	ConfigDir string `yaml:"config_dir"`
	// AgentUnit is the unit that runs K3s's agent while this host is no server, as
	// agent.unit runs the server. Empty: there is none.
	AgentUnit string `yaml:"agent_unit"`
}

// withK3s changes what other keys are by default: K3s's etcd has other times, and
// the Lease is in Kubernetes.
func (s *Settings) withK3s() {
	s.Flavour = k3s
	s.Member.Heartbeat, s.Member.ElectionTimeout = fitness.Duration(500*time.Millisecond), fitness.Duration(5*time.Second)
	s.Controller.Limits.ElectionTimeout = s.Member.ElectionTimeout
	s.Controller.SessionTTL = fitness.Duration(25 * time.Second)
	s.Controller.LeaseStore = inKubernetes
	s.Controller.RegradeHeadroom = 3 << 29
}

// leastHeadroom is the least that lies between stepping down and back up: below it
// the two would be one limit.
const leastHeadroom = 256 << 20

func (s Settings) validateFlavour() error {
	if s.Flavour != ownEtcd && s.Flavour != k3s {
		return config.Problem{Key: "flavour", Found: strconv.Quote(s.Flavour), Allowed: ownEtcd + " (members of Suffrage) or " + k3s}
	}
	if s.Flavour == ownEtcd {
		if h := s.Controller.RegradeHeadroom; h != 0 {
			return config.Problem{Key: "controller.regrade_headroom", Found: strconv.FormatInt(h, 10), Allowed: "0 with flavour " + ownEtcd + ", whose members are etcd alone"}
		}
		return nil
	}
	var errs []error
	bad := func(key, found, allowed string) {
		errs = append(errs, config.Problem{Key: key, Found: found, Allowed: allowed})
	}
	for _, p := range []struct{ key, path string }{{"data_dir", s.K3s.DataDir}, {"config_dir", s.K3s.ConfigDir}} {
		if !filepath.IsAbs(p.path) {
			bad("k3s."+p.key, strconv.Quote(p.path), "an absolute path")
		}
	}
	if u := s.K3s.AgentUnit; u != "" && !filepath.IsAbs(u) && !host.SystemdUnit.MatchString(u) {
		bad("k3s.agent_unit", strconv.Quote(u), "the name of a service of systemd, such as k3s-agent.service")
	}
	if s.Controller.LeaseStore != inKubernetes {
		bad("controller.lease_store", s.Controller.LeaseStore, inKubernetes+" with flavour "+k3s+", whose removals are asked for on Nodes")
	}
	if s.Endpoint.Listen != "" {
		bad("endpoint.listen", s.Endpoint.Listen, "none with flavour "+k3s+", whose servers use the etcd within them")
	}
	return errors.Join(errs...)
}

// fillK3s puts in place what K3s has laid down. Where no key is read from its
// directories, nothing is.
func (s *Settings) fillK3s() {
	server := filepath.Join(s.K3s.DataDir, "server")
	if e := &s.Etcd; e.CA+e.Cert+e.Key == "" {
		tls := filepath.Join(server, "tls", "etcd")
		e.CA, e.Cert, e.Key = filepath.Join(tls, "server-ca.crt"), filepath.Join(tls, "client.crt"), filepath.Join(tls, "client.key")
	}
	if s.Agent.Dir == "" { // on the datastore's filesystem
		s.Agent.Dir = filepath.Join(s.K3s.DataDir, "suffrage")
	}
	if s.Member.DataDir == "" {
		s.Member.DataDir = filepath.Join(server, "db", "etcd")
	}
}

// errK3s is why a command that is about members of Suffrage does nothing.
var errK3s = fmt.Errorf("flavour is %s: K3s runs etcd, and its own commands make, reset and restore a cluster (docs/k3s-recovery.md)", k3s)
