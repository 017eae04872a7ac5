package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"suffrage/agent"
	"suffrage/config"
	"suffrage/identity"
	"suffrage/membership/etcd"
	"suffrage/membership/host"
	"suffrage/snapshots"
)

func newAgentCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "agent",
		Short: "Measure this host and its way to every other",
		Long: `Runs on every host. Each period it takes one sample of every signal: round trips
to all other hosts of the roster, fsync and commit on the datastore's
filesystem, memory, restarts. Hosts of the roster may read the newest 400 of
each over TLS on this host's roster address; it judges nothing and changes
nothing but its own files. On a voter it saves a snapshot at the times of the
section "snapshots", where etcd.endpoints are set.

With agent.unit it also runs this host's etcd server: hosts of the roster may
order it to start, fence or retire that server, or to save a snapshot of it.
docs/orders.md has what these do.

With endpoint.listen it leads clients on this host, such as a Kubernetes API
server, to a voter of etcd, and follows the votes. docs/endpoint.md says how.

On agent.metrics it serves /metrics, /livez and /readyz.

Exit codes: 0 stopped as told; 1 it could not listen, agent.unit cannot be run or
a disk still hung at the end, with the reason; 2 wrong settings, key or roster.`,
		Example: "  suffrage agent --config /etc/suffrage/suffrage.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, key, roster, err := loadHost(c)
			if err != nil {
				return err
			}
			if s.Agent.Dir == "" {
				s.Agent.Dir = filepath.Join(s.Data, "agent")
			}
			server, err := s.server(c.Context())
			if err != nil {
				return err
			}
			reg, log := prometheus.NewRegistry(), newLog(c).With("host", s.Host)
			keeper, err := s.keeper(roster, reg, log)
			if err != nil {
				return err
			}
			o := agent.Options{
				Config: s.Agent, Host: s.Host, Key: key, Roster: s.rosterFile(),
				Software: version(), Log: log, Registry: reg, Server: server, Standing: s.standing,
			}
			if server != nil {
				o.Lacks = s.lacks(roster)
				if s.Flavour == k3s && host.SystemdUnit.MatchString(s.Agent.Unit) {
					o.K3s = s.standby(roster).K3sVersion()
				}
			}
			if keeper != nil {
				o.Snapshots = keeper.State
			}
			leads, err := s.endpoint(roster, reg, log)
			if err != nil {
				return err
			}
			if leads != nil {
				o.Endpoint = leads.Facts
			}
			a, err := agent.New(o)
			if err != nil {
				return err
			}
			err = errors.Join(
				reg.Register(collectors.NewGoCollector()),
				reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
			if err != nil {
				return fmt.Errorf("agent: metrics: %w", err)
			}
			group, ctx := errgroup.WithContext(c.Context())
			group.Go(func() error { return a.Run(ctx) })
			if keeper != nil {
				group.Go(func() error { return keeper.Run(ctx) })
			}
			if leads != nil {
				group.Go(func() error { return leads.Run(ctx) })
			}
			if err := group.Wait(); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	}
}

// heldSnapshots are those of the open operation: they are not pruned.
func (s Settings) heldSnapshots(ctx context.Context) ([]string, error) {
	client, err := s.Etcd.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	there, err := s.open(client)
	if err != nil {
		return nil, err
	}
	defer there.close()
	ctx, cancel := context.WithTimeout(ctx, s.Etcd.Timeout.Std())
	defer cancel()
	open, _, err := there.lease.Open(ctx)
	if err != nil {
		return nil, err
	}
	if open == nil {
		return host.Held(s.Snapshots.Dir)
	}
	return host.Held(s.Snapshots.Dir, open.ID)
}

// keeper saves this host's snapshots, nil where none are to be saved.
func (s Settings) keeper(roster *identity.Roster, reg prometheus.Registerer, log *slog.Logger) (*snapshots.Keeper, error) {
	metrics, err := snapshots.NewMetrics(reg)
	if err != nil {
		return nil, fmt.Errorf("agent: metrics: %w", err)
	}
	if len(s.Etcd.Endpoints) == 0 || len(s.Snapshots.At) == 0 {
		return nil, nil
	}
	if err := config.Under("etcd", s.Etcd.Validate()); err != nil {
		return nil, usage(err)
	}
	routine := snapshots.Routine{
		Dir: s.Snapshots.Dir, Keep: s.Snapshots.Keep, Metrics: metrics, Log: log,
		Held: s.heldSnapshots,
		Source: func(ctx context.Context) (snapshots.Source, error) {
			look := etcd.NewObserver(s.Etcd, etcd.Options{HostOf: hostOf(roster), ReadOnly: true}).Observe(ctx)
			return snapshots.SourceOf(look, s.Etcd, s.Host)
		},
	}
	return &snapshots.Keeper{Host: s.Host, Schedule: s.Snapshots.Schedule(), Save: routine.Run, Log: log}, nil
}
