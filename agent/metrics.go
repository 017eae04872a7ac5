package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"suffrage/fitness"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("suffrage_agent_"+name, help, labels, nil)
}

var (
	rttDesc       = desc("rtt_p99_seconds", "99th percentile of the newest 100 round trips to a peer, +Inf when two or more were lost; only with a full window. Above a tenth of the election timeout the pair is in violation: look at link and path.", "peer")
	fsyncDesc     = desc("wal_fsync_p99_seconds", "99th percentile of the newest 100 WAL-like fsyncs on the datastore's filesystem. From 0.01 the disk is too slow for etcd: look for what else writes there.")
	commitDesc    = desc("backend_commit_p99_seconds", "99th percentile of the newest 100 small bbolt commits on the datastore's filesystem. From 0.025 the disk is too slow for etcd.")
	memoryDesc    = desc("memory_available_min_bytes", "Lowest available memory in the newest 100 samples. Below etcd's storage quota the host is unfit: find what uses it.")
	stabilityDesc = desc("stability_events_max", "Most restarts and reboots in one of the newest 100 samples. Above 0 the host is unfit: find out what ended the member or the machine.")
	clockDesc     = desc("clock_offset_p50_seconds", "Median of the newest 100 offsets of a peer's clock, ahead of this host's. Beyond 0.5 either way: look at time synchronisation on both.", "peer")
	coverageDesc  = desc("window_samples", "Measured or lost samples in the newest window, 0 to 100. Below 100 the host is unknown: wait, or look at probe_success.", "signal", "peer")
	ageDesc       = desc("sample_age_seconds", "Age of the newest sample of a series. Above three periods it counts no more: look at probe_success and at the agent's log.", "signal", "peer")
	lostDesc      = desc("pings_lost_total", "Pings to a peer without an answer since the agent started. Each is a sample over every limit; when they grow, look at the path to the peer.", "peer")
	relayedDesc   = desc("path_relayed", "1 when Tailscale reaches a peer through a relay, 0 when directly; nothing where it does not say. 1: look at rtt_p99_seconds of that peer, and at what blocks UDP between the two.", "peer")
	expiryDesc    = desc("overlay_key_expiry_timestamp_seconds", "When this host's Tailscale key ends, and the host is gone from the network, Unix time; nothing where it never ends. Within a week: log in again, or switch its expiry off.")
	successDesc   = desc("probe_success", "1 when the probe's last run worked. 0: the agent's log and its report say why, and nothing is known of the signal meanwhile.", "probe")
	durationDesc  = desc("probe_duration_seconds", "How long the probe's last run took, or takes by now. Near 5 it hangs: look at the disk or daemon behind it.", "probe")
	lateDesc      = desc("tick_late_max_seconds", "How late the latest of the newest 100 ticks was. Samples that were later than the limit they are judged by weigh nothing; when this stays high, the host has too little processor time.")
)

// collector reads a record when it is asked. Adding a sample costs metrics
// nothing.
type collector struct{ r *record }

func newMetrics(reg prometheus.Registerer, r *record) { reg.MustRegister(collector{r}) }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range Described() {
		ch <- d
	}
}

// Described are the descriptions of all that an agent measures itself.
func Described() []*prometheus.Desc {
	return []*prometheus.Desc{rttDesc, fsyncDesc, commitDesc, memoryDesc, stabilityDesc, clockDesc,
		coverageDesc, ageDesc, lostDesc, relayedDesc, expiryDesc, successDesc, durationDesc, lateDesc}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	now := c.r.now()
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, g := range c.r.rings {
		gauge(coverageDesc, float64(g.window.Count()), string(g.signal), g.peer)
		if s := g.newest(); s != nil {
			gauge(ageDesc, float64(now-s.At)/1e6, string(g.signal), g.peer)
		}
		if g.signal == fitness.RTT {
			ch <- prometheus.MustNewConstMetric(lostDesc, prometheus.CounterValue, float64(g.lost), g.peer)
		}
		if !g.window.Full() {
			continue
		}
		switch g.signal {
		case fitness.RTT:
			gauge(rttDesc, float64(g.window.P99()), g.peer)
		case fitness.Clock:
			gauge(clockDesc, float64(g.window.P50()), g.peer)
		case fitness.WALFsync:
			gauge(fsyncDesc, float64(g.window.P99()))
		case fitness.BackendCommit:
			gauge(commitDesc, float64(g.window.P99()))
		case fitness.Memory:
			gauge(memoryDesc, float64(g.window.Min()))
		case fitness.Stability:
			gauge(stabilityDesc, float64(g.window.Max()))
		}
	}
	for _, p := range c.r.facts.Paths {
		relayed := 0.0
		if p.Kind == "relayed" {
			relayed = 1
		}
		gauge(relayedDesc, relayed, p.Peer)
	}
	if at := c.r.facts.OverlayExpires; at != 0 {
		gauge(expiryDesc, float64(at)/1e6)
	}
	for _, p := range c.r.probes {
		ok := 0.0
		if p.OK {
			ok = 1
		}
		gauge(successDesc, ok, p.Name)
		gauge(durationDesc, p.Seconds, p.Name)
	}
	gauge(lateDesc, float64(c.r.ticks.Max()))
}
