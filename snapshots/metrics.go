package snapshots

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are about the scheduled snapshots of one host.
type Metrics struct {
	last     prometheus.Gauge
	size     prometheus.Gauge
	duration prometheus.Gauge
	failures prometheus.Counter
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &Metrics{
		last:     gauge("suffrage_snapshot_last_success_timestamp_seconds", "When this host last saved and verified a snapshot by schedule; 0 since the start of the process. Alert when it is older than two of the schedule's intervals on a voter, and look at the agent's log."),
		size:     gauge("suffrage_snapshot_last_size_bytes", "The size of that snapshot. Keep at least twice that free where snapshots are."),
		duration: gauge("suffrage_snapshot_last_duration_seconds", "How long that save took."),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "suffrage_snapshot_failures_total", Help: "Scheduled saves that did not give a verified snapshot. The agent's log has the reason of each."}),
	}
	for _, c := range []prometheus.Collector{m.last, m.size, m.duration, m.failures} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) saved(s Saved, err error) {
	switch {
	case m == nil:
	case err != nil:
		m.failures.Inc()
	default:
		m.last.SetToCurrentTime()
		m.size.Set(float64(s.Size))
		m.duration.Set((time.Duration(s.Took) * time.Millisecond).Seconds())
	}
}
