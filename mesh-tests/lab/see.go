package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// Status is what the lab reads of `suffrage status -o json`.
type Status struct {
	ClusterID  string              `json:"cluster_id"`
	Leader     string              `json:"leader"`
	Hosts      []HostStatus        `json:"hosts"`
	Controller *etcd.Leadership    `json:"controller"`
	Decision   membership.Decision `json:"decision"`
}

// HostStatus is that of one host.
type HostStatus struct {
	Host    string          `json:"host"`
	Role    string          `json:"role"`
	Agent   bool            `json:"agent"`
	Verdict fitness.Verdict `json:"verdict"`
}

// Voters are the hosts that vote, sorted.
func (s Status) Voters() []string {
	var out []string
	for _, h := range s.Hosts {
		if h.Role == "voter" || h.Role == "leader" {
			out = append(out, h.Host)
		}
	}
	slices.Sort(out)
	return out
}

// Fit reports whether all these hosts are, for a whole window.
func (s Status) Fit(hosts ...string) bool { return s.Is(fitness.Fit, hosts...) }

// Is reports whether that is the verdict on all these hosts, for a whole window.
func (s Status) Is(status fitness.Status, hosts ...string) bool {
	return s.count(hosts, func(h HostStatus) bool { return h.Verdict.Status == status && h.Verdict.Whole }) == len(hosts)
}

// Answering reports whether all these hosts answer and are measured. How fast they
// are is the affair of the machine that they share.
func (s Status) Answering(hosts ...string) bool {
	return s.count(hosts, func(h HostStatus) bool { return s.answers(h) && h.Verdict.Status != fitness.StatusUnknown }) == len(hosts)
}

// Up is Answering where what was measured does not matter.
func (s Status) Up(hosts ...string) bool { return s.count(hosts, s.answers) == len(hosts) }

func (s Status) answers(h HostStatus) bool {
	return h.Agent && !s.Refuses(membership.VoterNotResponding, h.Host) && !s.Refuses(membership.VoterDown, h.Host)
}

func (s Status) count(hosts []string, is func(HostStatus) bool) (n int) {
	for _, h := range s.Hosts {
		if slices.Contains(hosts, h.Host) && is(h) {
			n++
		}
	}
	return n
}

// Refuses reports whether the decision has this refusal.
func (s Status) Refuses(code membership.Code, subject string) bool {
	return slices.ContainsFunc(s.Decision.Refusals, func(r membership.Refusal) bool { return r.Code == code && r.Subject == subject })
}

// RefusesAny is Refuses with whatever subject.
func (s Status) RefusesAny(code membership.Code) bool {
	return slices.ContainsFunc(s.Decision.Refusals, func(r membership.Refusal) bool { return r.Code == code })
}

// commandLimit bounds a command that answers at once, or not at all.
const commandLimit = 30 * time.Second

// Status asks for it on a host, as its owner does.
func (n *Node) Status(ctx context.Context) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	out, err := n.Suffrage(ctx, "status", "-o", "json")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return s, fmt.Errorf("lab: status on %s: %w in %s", n.Name, err, out)
	}
	return s, nil
}

// Readings asks a host for what another one measures, of itself and of its pairs,
// as its owner does.
func (n *Node) Readings(ctx context.Context, of string) ([]fitness.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var e struct {
		Readings []fitness.Reading `json:"readings"`
	}
	out, err := n.Suffrage(ctx, "explain", of, "-o", "json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		return nil, fmt.Errorf("lab: explain %s on %s: %w", of, n.Name, err)
	}
	return e.Readings, nil
}

// Operations are those that ended, the newest first.
func (f *Fleet) Operations(ctx context.Context) ([]membership.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	return etcd.Operations(ctx, f.Client, 50)
}

// Open is the operation that is under way, nil for none.
func (f *Fleet) Open(ctx context.Context) (*membership.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	op, _, err := etcd.OwnLease(f.Client).Open(ctx)
	return op, err
}
