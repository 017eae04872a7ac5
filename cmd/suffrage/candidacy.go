package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"suffrage/apiserver"
	"suffrage/membership/etcd"
)

// askEvery is the time between two looks of a controller that does not stand for
// election.
const askEvery = 5 * time.Second

// candidacy is when a controller stands for election: once the API server that it asks
// answers, or where nobody else stands. The election is in etcd, which answers where
// that API server does not, and a leader that gives way (control.ErrAway) to a
// controller that reaches none either would be given way to in turn, without end.
type candidacy struct {
	answers func(ctx context.Context) error // nil: there is no API server to ask
	leads   func(ctx context.Context) error // etcd.ErrNoLeader where nobody stands
	log     *slog.Logger
}

func (f *fleet) candidacy(log *slog.Logger) candidacy {
	bounded := func(ask func(ctx context.Context) error) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, f.callTimeout())
			defer cancel()
			return ask(ctx)
		}
	}
	c := candidacy{log: log, leads: bounded(func(ctx context.Context) error {
		_, err := etcd.Leader(ctx, f.client)
		return err
	})}
	if f.nodes != nil {
		c.answers = bounded(func(ctx context.Context) error { return f.nodes.Answers(ctx, f.Host) })
	}
	return c
}

// wait returns once the controller is to stand, or with the context's error.
func (c candidacy) wait(ctx context.Context) error {
	for said := false; c.answers != nil; {
		err := c.answers(ctx)
		if !apiserver.Away(err) || errors.Is(c.leads(ctx), etcd.ErrNoLeader) {
			return ctx.Err()
		}
		if !said {
			c.log.Warn("not standing for election: another controller leads, and the API server does not answer this one", "err", err)
			said = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askEvery):
		}
	}
	return nil
}
