package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"suffrage/agent"
)

func newAgentCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "agent",
		Short: "Measure this host and its way to every other",
		Long: `Runs on every host. Each period it takes one sample of every signal: round trips
to all other hosts of the roster, fsync and commit on the datastore's
filesystem, memory, restarts. Hosts of the roster may read the newest 400 of
each over TLS on this host's roster address; it judges nothing and changes
nothing but its own files.

With agent.unit it also runs this host's etcd server: hosts of the roster may
order it to start, fence or retire that server, or to save a snapshot of it.
docs/orders.md has what these do.

On agent.metrics it serves /metrics, /livez and /readyz.

Exit codes: 0 stopped as told; 1 it could not listen or a disk still hung at the
end, with the reason; 2 wrong settings, key or roster.`,
		Example: "  suffrage agent --config /etc/suffrage/suffrage.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, key, _, err := loadHost(c)
			if err != nil {
				return err
			}
			if s.Agent.Dir == "" {
				s.Agent.Dir = filepath.Join(s.Data, "agent")
			}
			server, err := s.server()
			if err != nil {
				return err
			}
			reg := prometheus.NewRegistry()
			a, err := agent.New(agent.Options{
				Config: s.Agent, Host: s.Host, Key: key, Roster: s.rosterFile(),
				Software: version(), Log: newLog(c).With("host", s.Host), Registry: reg, Server: server,
			})
			if err != nil {
				return err
			}
			err = errors.Join(
				reg.Register(collectors.NewGoCollector()),
				reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
			if err != nil {
				return fmt.Errorf("agent: metrics: %w", err)
			}
			return a.Run(c.Context())
		},
	}
}
