package control

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/fitness"
	"suffrage/membership"
)

// Metrics are the controller's; docs/metrics.md says what to do when one moves.
// Gauges are made from the newest round at the moment of the scrape, so that a
// scrape never sees half a round and a host that left leaves no series behind.
type Metrics struct {
	changes, recordFailures prometheus.Counter
	refused                 *prometheus.CounterVec
	roundSeconds            prometheus.Histogram
	loop                    *Loop
}

var (
	figureDesc     = desc("fitness_figure", "What a host is judged by, per signal: p99 in seconds, available memory in bytes, restarts. Compare with suffrage_fitness_limit.", "host", "signal")
	limitDesc      = desc("fitness_limit", "The voters' limit for the figure of the same labels.", "host", "signal")
	rttDesc        = desc("rtt_p99_seconds", "p99 round trip of an ordered pair of hosts; +Inf when pings are lost. Above a tenth of the election timeout a voter is unfit.", "host", "peer")
	rttLimitDesc   = desc("rtt_limit_seconds", "The voters' limit for suffrage_rtt_p99_seconds: a tenth of the election timeout.")
	coverageDesc   = desc("window_samples", "Samples in the newest window of a signal, 0 to 100. Below 100 the host is unknown: see its agent's probes.", "host", "signal")
	verdictDesc    = desc("verdict", "1 for the verdict that a host has, 0 for the others. unfit or unknown for long: run suffrage explain HOST.", "host", "verdict")
	agentDesc      = desc("agent_up", "1 when the host's agent answered in the last round. 0: see its log, its key and the path.", "host")
	decisionDesc   = desc("decision", "1 for the kind of the last decision, 0 for the others. refused for long: run suffrage status.", "kind")
	refusalAgeDesc = desc("refusal_age_seconds", "For how long a refusal has held. Old ones wait for the owner: run suffrage plan.", "code", "subject")
	votersDesc     = desc("voters", "Voters in the member list.")
	fitDesc        = desc("voters_fit", "Voters that answer and are not unfit.")
	toleranceDesc  = desc("tolerance", "How many more voters can be lost, counted on fit ones. 0: lose nothing now.")
	lastRoundDesc  = desc("last_round_timestamp_seconds", "When the last round ended, in Unix time. Old: the controller hangs.")
	leadingDesc    = desc("leading", "1 while this controller leads. Summed over all controllers it should be 1.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("suffrage_"+name, help, labels, nil)
}

// NewMetrics registers the metrics of a loop and ties the two together.
func NewMetrics(r prometheus.Registerer, l *Loop) *Metrics {
	m := &Metrics{
		changes:        prometheus.NewCounter(prometheus.CounterOpts{Name: "suffrage_decision_changes_total", Help: "Decisions that said something else than the one before. Fast: something swings around a limit."}),
		recordFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "suffrage_record_failures_total", Help: "Inputs of decisions that could not be kept. See the log and the free space of the directory."}),
		refused:        prometheus.NewCounterVec(prometheus.CounterOpts{Name: "suffrage_refusals_total", Help: "Refusals that began, by code. docs/refusals.md says what lifts each."}, []string{"code"}),
		roundSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "suffrage_round_seconds", Help: "How long a round took. Near the host timeout: some host does not answer.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 12)}),
		loop: l,
	}
	r.MustRegister(m.changes, m.recordFailures, m.refused, m.roundSeconds, m)
	l.Metrics = m
	return m
}

// Describe gives the descriptions of the gauges.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	all := append(describeOperation(), figureDesc, limitDesc, rttDesc, rttLimitDesc, coverageDesc, verdictDesc, agentDesc, decisionDesc,
		refusalAgeDesc, votersDesc, fitDesc, toleranceDesc, lastRoundDesc, leadingDesc)
	for _, d := range all {
		ch <- d
	}
}

// Collect makes the gauges from the newest round. A controller that does not
// lead says so and nothing else: what it once found is nobody's any more.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(leadingDesc, oneIf(m.loop.leads.Load()))
	s := m.loop.Last()
	if s == nil {
		return
	}
	in, d := s.Inputs, s.Decision
	for _, r := range in.Readings {
		full := r.Count == fitness.WindowSize
		switch {
		case r.Signal == fitness.RTT && full:
			gauge(rttDesc, float64(r.Figure), r.Host, r.Peer)
		case !r.Signal.OfPair():
			gauge(coverageDesc, float64(r.Count), r.Host, string(r.Signal))
			gauge(limitDesc, float64(r.Limit.Voter), r.Host, string(r.Signal))
			if full {
				gauge(figureDesc, float64(r.Figure), r.Host, string(r.Signal))
			}
		}
	}
	for _, h := range in.View.Hosts {
		gauge(agentDesc, oneIf(h.Reachable), h.Name)
	}
	for _, v := range d.Verdicts {
		for _, st := range []fitness.Status{fitness.Fit, fitness.Marginal, fitness.Unfit, fitness.StatusUnknown} {
			gauge(verdictDesc, oneIf(v.Status == st), v.Host, st.String())
		}
	}
	for _, k := range []membership.Kind{membership.Steady, membership.Planned, membership.StepNext, membership.Refused} {
		gauge(decisionDesc, oneIf(d.Kind == k), string(k))
	}
	// Two members on one host may give the same refusal twice; the same series twice
	// would spoil the whole page. The older one is told.
	ages := map[[2]string]float64{}
	for _, r := range d.Refusals {
		k := [2]string{string(r.Code), r.Subject}
		ages[k] = max(ages[k], in.Now.Sub(r.Since).Seconds())
	}
	for k, age := range ages {
		gauge(refusalAgeDesc, age, k[0], k[1])
	}
	gauge(rttLimitDesc, float64(in.Policy.Limits.For(fitness.RTT, 0).Voter))
	collectMembers(gauge, in.View)
	collectOperation(gauge, in, d)
	gauge(votersDesc, float64(d.Voters))
	gauge(fitDesc, float64(d.FitVoters))
	gauge(toleranceDesc, float64(d.Tolerance))
	gauge(lastRoundDesc, seconds(in.Now.Add(s.Took)))
}

// count adds one round to what is counted.
func (m *Metrics) count(d membership.Decision, took time.Duration) {
	m.roundSeconds.Observe(took.Seconds())
	for _, r := range d.Refusals {
		if r.Since.Equal(d.At) {
			m.refused.WithLabelValues(string(r.Code)).Inc()
		}
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
