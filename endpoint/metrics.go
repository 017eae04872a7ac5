package endpoint

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the local datastore endpoint. docs/metrics.md has what to do when
// they move.
type Metrics struct {
	listening   prometheus.Gauge
	connections prometheus.Gauge
	refused     prometheus.Counter
	requests    *prometheus.CounterVec
	repeated    prometheus.Counter
	left        prometheus.Counter

	mu    sync.Mutex
	leads *prometheus.GaugeVec
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "suffrage", Subsystem: "endpoint", Name: name, Help: help}
	}
	m := &Metrics{
		listening:   prometheus.NewGauge(prometheus.GaugeOpts(opts("listening", "1 while the local datastore endpoint listens. 0: something else has its address; the agent's log names it."))),
		connections: prometheus.NewGauge(prometheus.GaugeOpts(opts("connections", "Connections of clients on this host."))),
		refused:     prometheus.NewCounter(prometheus.CounterOpts(opts("connections_refused_total", "Connections closed because there were too many. When it grows, a client leaks them."))),
		requests:    prometheus.NewCounterVec(prometheus.CounterOpts(opts("requests_total", "Requests by how they ended: answered by a voter, whatever it said; unavailable, where none could be led to or one went away; refused, what clients may not do.")), []string{"outcome"}),
		repeated:    prometheus.NewCounter(prometheus.CounterOpts(opts("requests_repeated_total", "Requests sent again because it was certain that they had not been carried out, as while leadership moves. Steady growth: voters are hard to reach from here."))),
		left:        prometheus.NewCounter(prometheus.CounterOpts(opts("voters_left_total", "Times that a voter was left: silent, about to be removed, or another one is better. Many in an hour: look at the path to the voters."))),
		leads:       prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("leads_to", "1 for the voter that reads or writes are led to. None: no voter is well as seen from here.")), []string{"voter", "what"}),
	}
	for _, outcome := range []string{"answered", "unavailable", "refused"} {
		m.requests.WithLabelValues(outcome)
	}
	for _, c := range []prometheus.Collector{m.listening, m.connections, m.refused, m.requests, m.repeated, m.left, m.leads} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// led says where requests are led now; empty names are nowhere.
func (m *Metrics) led(reads, writes string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leads.Reset()
	if reads != "" {
		m.leads.WithLabelValues(reads, "reads").Set(1)
		m.leads.WithLabelValues(writes, "writes").Set(1)
	}
}
