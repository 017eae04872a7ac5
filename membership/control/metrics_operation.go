package control

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/membership"
)

// moves are the labels that say what a plan or an operation does to whom. Those that
// are empty are no labels to Prometheus: a swap has two, a regrading the two others.
var moves = []string{"out", "in", "regrade", "to"}

var (
	roleDesc      = desc("host_role", "1 for the role that a host has: leader, voter, learner or standby; 0 for the others. The leader is a voter too.", "host", "role")
	voterUpDesc   = desc("voter_up", "1 when the voter served a request that passes through a quorum, in the last round. 0: see its etcd's log and the path to it.", "host")
	targetDesc    = desc("target", "The number of voters to keep. Differs from suffrage_voters: run suffrage target.")
	modeDesc      = desc("mode", "1 for the mode, active or dry-run. Only active changes anything.", "mode")
	pausedDesc    = desc("paused", "1 while the owner has paused it. Nothing new is started: suffrage resume lifts it.")
	planDesc      = desc("plan_age_seconds", "For how long the plan has been the same; there only while there is one. out loses its vote, in gets one; or the server of the host regrade gets the grade to. Old in mode active: something keeps it from starting.", moves...)
	openDesc      = desc("operation_open", "1 while an operation is under way.")
	openAgeDesc   = desc("operation_age_seconds", "How long ago the operation under way began; there only while there is one. Above the stall time: run suffrage operations show.", moves...)
	stepDesc      = desc("operation_step", "1 for the step that the operation is at, 0 for the others. turn-back: it goes back.", "step")
	recordedDesc  = desc("operations_recorded", "Ended operations of the last days in the history, by outcome. undone or stopped: run suffrage operations list.", "outcome")
	lastEndedDesc = desc("operation_last_ended_timestamp_seconds", "When the newest operation of an outcome ended, in Unix time; there only once there is one.", append([]string{"outcome"}, moves...)...)
	leaseDesc     = desc("lease_term", "The Term of the Lease while this controller holds it, else 0. Held for long: see suffrage_operation_step.")
)

// describeOperation are the descriptions of what collectOperation makes.
func describeOperation() []*prometheus.Desc {
	return []*prometheus.Desc{roleDesc, voterUpDesc, targetDesc, modeDesc, pausedDesc, planDesc, openDesc, openAgeDesc, stepDesc,
		recordedDesc, lastEndedDesc, leaseDesc}
}

type gauge func(d *prometheus.Desc, v float64, labels ...string)

// collectMembers gives every host of the roster its role, and every voter
// whether it answers.
func collectMembers(gauge gauge, v membership.View) {
	if v.Error != "" {
		return // nobody is a standby for want of a member list
	}
	roles, up := map[string]string{}, map[string]bool{}
	for _, h := range v.Hosts {
		roles[h.Name] = "standby"
	}
	for _, m := range v.Members {
		role := "voter"
		switch {
		case m.Learner:
			role = "learner"
		case m.Responding && m.Leader == m.ID:
			role = "leader"
		}
		// Two members on one host are one series: the same one twice would spoil
		// the whole page.
		host := m.Label()
		was, known := up[host]
		if known && role != "leader" {
			role = roles[host]
		}
		roles[host] = role
		if !m.Learner {
			up[host] = m.Responding && (was || !known)
		}
	}
	for host, all := range up {
		gauge(voterUpDesc, oneIf(all), host)
	}
	for host, has := range roles {
		for _, role := range []string{"leader", "voter", "learner", "standby"} {
			gauge(roleDesc, oneIf(has == role), host, role)
		}
	}
}

// collectOperation tells what the owner wants and what is under way.
func collectOperation(gauge gauge, in membership.Inputs, d membership.Decision) {
	gauge(targetDesc, float64(in.Policy.Target))
	for _, mode := range []string{membership.Active, membership.DryRun} {
		gauge(modeDesc, oneIf(d.Mode == mode), mode)
	}
	gauge(pausedDesc, oneIf(in.Policy.Paused != nil && in.Policy.Paused.Value))
	if d.Plan != nil {
		p := d.Plan
		gauge(planDesc, in.Now.Sub(d.Since).Seconds(), p.Out, p.In, p.Regrade, string(p.To))
	}
	op, step := d.Operation, ""
	if op == nil {
		op = in.Open
	}
	if op != nil {
		gauge(openAgeDesc, in.Now.Sub(op.Begun).Seconds(), op.Out, op.In, op.Regrade, string(op.To))
	}
	if d.Step != nil {
		step = d.Step.Step
	}
	gauge(openDesc, oneIf(op != nil))
	for _, name := range membership.StepNames() {
		gauge(stepDesc, oneIf(step == name), name)
	}
	collectEnded(gauge, in.Operations)
	gauge(leaseDesc, float64(in.Term))
}

func collectEnded(gauge gauge, ended []membership.Operation) {
	for _, outcome := range []membership.Outcome{membership.Completed, membership.Undone, membership.Stopped} {
		n, newest := 0, membership.Operation{}
		for _, o := range ended {
			if o.Outcome != outcome {
				continue
			}
			n++
			if o.Ended.After(newest.Ended) {
				newest = o
			}
		}
		gauge(recordedDesc, float64(n), string(outcome))
		if n > 0 {
			gauge(lastEndedDesc, seconds(newest.Ended), string(outcome), newest.Out, newest.In, newest.Regrade, string(newest.To))
		}
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
