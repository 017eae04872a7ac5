package control

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/fitness"
	"suffrage/membership"
)

// page is a metrics page made of one round that a test wrote down.
func page(in membership.Inputs, d membership.Decision) *prometheus.Registry {
	l := &Loop{}
	reg := prometheus.NewRegistry()
	NewMetrics(reg, l)
	l.last.Store(&State{Inputs: in, Decision: d})
	return reg
}

func TestMetricsOfAnOperation(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	op := &membership.Operation{ID: "x", Out: "h3", In: "h4", Begun: now.Add(-40 * time.Second)}
	in := membership.Inputs{Now: now, Open: op, Term: 7, Policy: membership.Policy{Target: 3, Mode: membership.Active, Paused: &membership.Say{Value: true}},
		Operations: []membership.Operation{
			{Outcome: membership.Undone, Out: "h2", In: "h4", Ended: now.Add(-time.Hour)},
			{Outcome: membership.Undone, Out: "h3", In: "h5", Ended: now.Add(-time.Minute)},
			{Outcome: membership.Stopped, Regrade: "h2", To: fitness.EtcdOnly, Ended: now.Add(-time.Minute)},
		}}
	reg := page(in, membership.Decision{Kind: membership.StepNext, Mode: membership.Active, Operation: op, Step: &membership.Act{Verb: membership.Wait, Step: "soak"}})
	got := values(t, reg)
	for series, want := range map[string]float64{
		`suffrage_lease_term`:                             7,
		`suffrage_operation_open`:                         1,
		`suffrage_operation_age_seconds{in=h4,out=h3}`:    40,
		`suffrage_operation_step{step=soak}`:              1,
		`suffrage_operation_step{step=join}`:              0,
		`suffrage_operation_step{step=turn-back}`:         0,
		`suffrage_operations_recorded{outcome=undone}`:    2,
		`suffrage_operations_recorded{outcome=completed}`: 0,
		`suffrage_mode{mode=active}`:                      1,
		`suffrage_mode{mode=dry-run}`:                     0,
		`suffrage_paused`:                                 1,
		`suffrage_target`:                                 3,
		`suffrage_operation_last_ended_timestamp_seconds{in=h5,out=h3,outcome=undone}`:             1_800_000_000 - 60,
		`suffrage_operation_last_ended_timestamp_seconds{outcome=stopped,regrade=h2,to=etcd-only}`: 1_800_000_000 - 60,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), want %v", series, v, ok, want)
		}
	}
}

// A member on no host, a learner, and two members on one host: each host is one
// series, or Prometheus would refuse the page.
func TestMetricsOfOddMembers(t *testing.T) {
	in := membership.Inputs{View: membership.View{
		Hosts: []membership.Host{{Name: "h1"}, {Name: "h2"}, {Name: "h3"}, {Name: "h4"}},
		Members: []membership.Member{
			{ID: "a", Host: "h1", Leader: "a", Responding: true},
			{ID: "b", Host: "h1", Leader: "a"},
			{ID: "c", Host: "h2", Leader: "a", Responding: true},
			{ID: "d", Host: "h3", Learner: true, Responding: true},
			{ID: "e"},
		}}}
	twice := membership.Refusal{Code: membership.VoterNotResponding, Subject: "h1", Since: in.Now}
	older := twice
	older.Since = in.Now.Add(-time.Minute)
	got := values(t, page(in, membership.Decision{Refusals: []membership.Refusal{older, twice}}))
	for series, want := range map[string]float64{
		`suffrage_host_role{host=h1,role=leader}`:                            1,
		`suffrage_host_role{host=h2,role=voter}`:                             1,
		`suffrage_host_role{host=h3,role=learner}`:                           1,
		`suffrage_host_role{host=h4,role=standby}`:                           1,
		`suffrage_host_role{host=e,role=voter}`:                              1,
		`suffrage_voter_up{host=h1}`:                                         0, // one of the two does not answer
		`suffrage_voter_up{host=h2}`:                                         1,
		`suffrage_refusal_age_seconds{code=voter-not-responding,subject=h1}`: 60,
		`suffrage_voter_up{host=e}`:                                          0,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), want %v", series, v, ok, want)
		}
	}
	in.View.Error = "no quorum"
	for series := range values(t, page(in, membership.Decision{})) {
		if strings.HasPrefix(series, "suffrage_host_role") || strings.HasPrefix(series, "suffrage_voter_up") {
			t.Errorf("%s without a member list", series)
		}
	}
}

// values are the gauges of a page by name and labels.
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" { // no label to Prometheus
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			out[name] = m.GetGauge().GetValue()
		}
	}
	return out
}
