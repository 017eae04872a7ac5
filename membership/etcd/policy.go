package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/membership"
)

const policyKey = "/suffrage/policy"

// The two modes.
const (
	DryRun = "dry-run" // reports, changes nothing
	Active = "active"  // acts
)

// Said is one statement of the owner that is not yes or no: see membership.Say.
type Said struct {
	Value  string    `json:"value"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Policy is what the owner said while it runs. It goes before the settings
// files, which may differ from host to host.
type Policy struct {
	// Mode is DryRun or Active.
	Mode *Said `json:"mode,omitempty"`
	// Paused: true starts nothing new.
	Paused *membership.Say `json:"paused,omitempty"`
	// Stop ends one operation where it is.
	Stop *membership.Stop `json:"stop,omitempty"`
	// Target is the number of voters to keep: odd, 3 to 9.
	Target *Number `json:"target,omitempty"`
}

// Number is one statement of the owner that is a number.
type Number struct {
	Value  int       `json:"value"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Validate says what cannot be.
func (p Policy) Validate() error {
	if m := p.Mode; m != nil && m.Value != DryRun && m.Value != Active {
		return fmt.Errorf("mode %.40q: allowed are %s and %s", m.Value, DryRun, Active)
	}
	if t := p.Target; t != nil && (t.Value < 3 || t.Value > 9 || t.Value%2 == 0) {
		return fmt.Errorf("target %d: allowed are 3, 5, 7 and 9", t.Value)
	}
	return nil
}

// Fill writes what was said over what the settings say.
func (p Policy) Fill(to *membership.Policy) {
	if p.Mode != nil {
		to.Mode = p.Mode.Value
	}
	if p.Target != nil {
		to.Target = p.Target.Value
	}
	to.Paused, to.Stop = p.Paused, p.Stop
}

// LoadPolicy gives the zero Policy where nothing was said. With an error nobody
// knows what the owner wants: change nothing.
func LoadPolicy(ctx context.Context, kv clientv3.KV) (Policy, error) {
	g, err := kv.Get(ctx, policyKey)
	if err != nil {
		return Policy{}, fmt.Errorf("etcd: read %s: %w", policyKey, err)
	}
	if len(g.Kvs) == 0 {
		return Policy{}, nil
	}
	p, err := readPolicy(g.Kvs[0].Value)
	if err != nil {
		return Policy{}, fmt.Errorf("etcd: read %s: %w: say it again, beginning with: suffrage mode dry-run", policyKey, err)
	}
	return p, nil
}

func readPolicy(data []byte) (p Policy, err error) {
	if err := strict(data, &p); err != nil {
		return Policy{}, err
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// UpdatePolicy changes it, only if nobody else did in between. change gets the
// present one, or the zero one where it cannot be read. An error that came after
// the write was sent leaves it unknown whether it was done.
func UpdatePolicy(ctx context.Context, kv clientv3.KV, change func(Policy) (Policy, error)) (Policy, error) {
	return update(ctx, kv, policyKey, "policy", "suffrage mode", func(p Policy) (Policy, error) {
		if p.Validate() != nil {
			p = Policy{}
		}
		p, err := change(p)
		if err == nil {
			err = p.Validate()
		}
		return p, err
	})
}
