package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"suffrage/apiserver"
	"suffrage/identity"
	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/membership/kube"
)

// pace is the longest pause between two rounds while the Lease is held, as during
// the soak: each round costs every voter a look, and a proposal.
const pace = 500 * time.Millisecond

// acting ties what a controller acts with: the Lease, etcd, the agents.
func (f *fleet) acting(log *slog.Logger) *control.Acting {
	cfg := f.Controller.Lease
	cfg.ElectionTimeout, cfg.Log = f.Member.ElectionTimeout, log
	return &control.Acting{
		Host: f.Host,
		Away: apiserver.Away,
		Pace: pace,
		Peek: func(ctx context.Context) (*membership.Operation, error) {
			ctx, cancel := context.WithTimeout(ctx, f.callTimeout())
			defer cancel()
			open, _, err := f.lease.Open(ctx)
			return open, err
		},
		Take: func(ctx context.Context, purpose string, lead control.Lead) error {
			return lease.Run(ctx, cfg, f.lease, lease.NewHolder(f.Host), purpose, func(ctx context.Context, held *lease.Held) error {
				if err := f.lease.Here(ctx, f.client); err != nil {
					return err
				}
				journal, right := etcd.NewJournal(held), f.lease.Right(held.Term())
				changer := etcd.NewChanger(f.Etcd, f.Member.ElectionTimeout.Std())
				changer.Open = journal.Load
				return lead(ctx, &control.Operator{
					Journal:  journal,
					Members:  changer,
					Hosts:    orders{f.agents},
					Removals: f.removals(journal, held.Term()),
					History:  etcd.NewHistory(f.client, right),
					By:       membership.ByController,
					ClearRequest: func(ctx context.Context, r membership.Request) error {
						return etcd.ClearRequest(ctx, f.client, right, r)
					},
					Peer: f.peerURL,
				}, journal.Load)
			})
		},
	}
}

// removals is where the removal of a voter is asked for.
func (f *fleet) removals(journal etcd.Journal, term lease.Term) control.Removals {
	if f.Flavour != k3s {
		return etcd.NewRequester(f.client, f.lease, term, f.peerURL)
	}
	return &kube.Requester{Nodes: f.nodes, Term: uint64(term), Check: journal.Check, Members: func(ctx context.Context) ([]membership.Member, error) {
		ob := etcd.NewObserver(f.Etcd, etcd.Options{HostOf: hostOf(f.roster)}).Observe(ctx)
		if ob.Error != "" {
			return nil, errors.New(ob.Error)
		}
		return ob.Members, nil
	}}
}

// remover acts on the removals that are asked for by annotation.
func (f *fleet) remover(who etcd.Candidate, log *slog.Logger) *etcd.Remover {
	changer := etcd.NewChanger(f.Etcd, f.Member.ElectionTimeout.Std())
	return &etcd.Remover{Client: f.client, Lease: f.lease, Changer: changer, Who: who, TTL: changer.Most() + 5*time.Second, HostOf: hostOf(f.roster), Log: log}
}

// peerURL is the one that a host has as a member: its mesh address.
func (f *fleet) peerURL(host string) string { return peerURL(f.roster, host) }

func peerURL(roster *identity.Roster, host string) string {
	h, _ := roster.ByName(host)
	u := url.URL{Scheme: "https", Host: netip.AddrPortFrom(h.Address, 2380).String()}
	return u.String()
}
