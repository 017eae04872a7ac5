package member

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// registerTiming adds what etcd's page lacks. etcd serves the default registry,
// so that is the Registerer to pass. unregister takes them out again.
func registerTiming(r prometheus.Registerer, c Config) (unregister func(), err error) {
	gauge := func(name, help string, v float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return v })
	}
	all := []prometheus.Collector{
		gauge("suffrage_member_election_timeout_seconds",
			"The election timeout that this member runs with. It must be equal on all members; limits on round trips are a tenth and a twentieth of it.", c.ElectionTimeout.Seconds()),
		gauge("suffrage_member_heartbeat_seconds",
			"The time between two heartbeats of this member while it leads. Keep it above the round trip to the slowest voter.", c.Heartbeat.Seconds()),
	}
	var done []prometheus.Collector
	unregister = func() {
		for _, c := range done {
			r.Unregister(c)
		}
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			unregister()
			return nil, fmt.Errorf("member: register metrics: %w", err)
		}
		done = append(done, c)
	}
	return unregister, nil
}
