package main

import (
	"context"
	"errors"
	"fmt"

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
func (s Settings) server() (agent.Server, error) {
	if s.Agent.Unit == "" {
		return nil, nil
	}
	m, err := s.member()
	if err != nil {
		return nil, usage(fmt.Errorf("agent.unit is set, so this host may become a voter: %w", err))
	}
	peer := m.AdvertisePeer
	if peer == "" {
		peer = m.ListenPeer
	}
	return host.New(host.Options{
		Host: s.Host, Data: s.Data, Datastore: m.DataDir, Snapshots: s.Snapshots.Dir, Peer: peer,
		Unit: host.Socket(s.Agent.Unit), Save: s.saveOwn,
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
