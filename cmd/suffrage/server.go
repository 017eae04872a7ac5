package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"suffrage/agent"
	"suffrage/config"
	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/membership/host"
	"suffrage/snapshots"
)

// server is this host's etcd server for its agent, nil where the agent runs none.
func (s Settings) server(ctx context.Context) (agent.Server, error) {
	if s.Agent.Unit == "" {
		return nil, nil
	}
	if s.Flavour == k3s {
		return s.k3sServer(ctx)
	}
	m, err := s.member()
	if err != nil {
		return nil, usage(fmt.Errorf("agent.unit is set, so this host may become a voter: %w", err))
	}
	unit, err := s.unit(ctx, host.Systemd{Name: s.Agent.Unit})
	if err != nil {
		return nil, fmt.Errorf("agent.unit: %w", err)
	}
	peer := m.AdvertisePeer
	if peer == "" {
		peer = m.ListenPeer
	}
	return host.New(host.Options{
		Host: s.Host, Data: s.Data, Datastore: m.DataDir, Snapshots: s.Snapshots.Dir, Peer: peer,
		Unit: unit, Save: s.saveOwn,
	})
}

// unitTime is how long systemd may take to tell what it has loaded.
const unitTime = 30 * time.Second

// unit is what runs the server. One of systemd's is looked at first: better no
// agent than one whose orders fail in the middle of a swap.
func (s Settings) unit(ctx context.Context, u host.Systemd) (host.Unit, error) {
	if filepath.IsAbs(u.Name) {
		return host.Socket(u.Name), nil
	}
	u.Data = s.Data
	ctx, cancel := context.WithTimeout(ctx, unitTime)
	defer cancel()
	return u, u.Check(ctx)
}

// k3sServer is this host's K3s server for its agent.
func (s Settings) k3sServer(ctx context.Context) (agent.Server, error) {
	roster, err := identity.LoadRoster(s.rosterFile())
	if err != nil {
		return nil, usage(err)
	}
	k := &host.K3s{Config: s.K3s.ConfigDir}
	unit, err := s.unit(ctx, host.Systemd{Name: s.Agent.Unit, K3s: true, DataDir: s.K3s.DataDir, Config: s.K3s.ConfigDir})
	if err != nil {
		return nil, fmt.Errorf("agent.unit: %w", err)
	}
	if s.K3s.AgentUnit != "" {
		if k.Agent, err = s.unit(ctx, host.Systemd{Name: s.K3s.AgentUnit, Behind: true}); err != nil {
			return nil, fmt.Errorf("k3s.agent_unit: %w", err)
		}
	}
	return host.New(host.Options{
		Host: s.Host, Data: s.Data, Datastore: s.Member.DataDir, Snapshots: s.Snapshots.Dir, Peer: peerURL(roster, s.Host),
		Unit: unit, K3s: k, Save: s.saveOwn,
	})
}

// saveOwn saves a snapshot of this host's own voter. The roster is read again:
// the agent lives longer than it.
func (s Settings) saveOwn(ctx context.Context) (fitness.SnapshotFacts, error) {
	var none fitness.SnapshotFacts
	if err := config.Under("etcd", s.Etcd.Validate()); err != nil {
		return none, err
	}
	roster, err := identity.LoadRoster(s.rosterFile())
	if err != nil {
		return none, err
	}
	ob := etcd.NewObserver(s.Etcd, etcd.Options{HostOf: hostOf(roster), ReadOnly: true}).Observe(ctx)
	src, err := snapshots.SourceOf(ob, s.Etcd, s.Host)
	if err != nil {
		return none, err
	}
	got, err := snapshots.Save(ctx, src, s.Snapshots.Dir, nil)
	if err != nil {
		return none, err
	}
	return fitness.SnapshotFacts{File: got.Path, Revision: got.Revision, Size: got.Size, Hash: got.SHA256}, nil
}

// orders carries the controller's orders to agents.
type orders struct{ agents *agent.Client }

// Order is control.Hosts.
func (o orders) Order(ctx context.Context, name string, order control.Order) error {
	err := o.agents.Order(ctx, name, host.Order(order))
	if errors.Is(err, agent.ErrUnknown) {
		return fmt.Errorf("%w: %w", control.ErrUnknown, err)
	}
	return err
}

var _ control.Hosts = orders{}
