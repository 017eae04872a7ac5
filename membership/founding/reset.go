package founding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"suffrage/membership"
	"suffrage/membership/host"
	"suffrage/snapshots"
)

// Sources of a reset, besides the path of a snapshot.
const (
	Latest = "latest" // the newest snapshot in Founder.Snapshots
	Own    = "own"    // this host's own datastore
)

// ErrNoSource means that there is nothing to begin with.
var ErrNoSource = errors.New("founding: nothing to reset from")

// ResetOptions say what the new cluster begins with.
type ResetOptions struct {
	// From is a path, Latest or Own.
	From string
	// Aside moves a datastore that is here; Own does it in any case.
	Aside bool
	// Bump is how far the revision is raised: snapshots.DefaultBump where it is 0.
	Bump int64
}

// PlanReset looks at all hosts and says what a reset on this one would do. A
// snapshot is read to its end.
func (f Founder) PlanReset(ctx context.Context, o ResetOptions) (Plan, error) {
	s, err := f.see(ctx)
	if err != nil {
		return Plan{}, err
	}
	record := goesOn(s.Local, host.ByReset)
	p := Plan{
		By: host.ByReset, Host: f.Host, Members: map[string]string{f.Host: f.Look.Self}, Silent: s.Silent(),
		Token: newToken(), GoesOn: record != nil, bump: o.Bump, Aside: s.Local.Datastore && record == nil,
	}
	if record != nil {
		p.Token, p.Members = record.Token, record.Members
	}
	if err := p.identify(); err != nil {
		return Plan{}, err
	}
	p.Replaces = s.Replaced(p.Cluster)
	for _, other := range s.Others {
		if other.Standing != nil && other.Standing.Datastore {
			p.Stopped = append(p.Stopped, other.Host)
		}
	}
	p.Confirm = "reset to " + f.Host
	if len(p.Silent) > 0 {
		p.Confirm += "; etcd is dead on " + strings.Join(p.Silent, ",")
	}
	p.refuse(ResetRefusals(s, o.Aside || o.From == Own))
	if len(p.Refusals) > 0 {
		return p, nil
	}
	if record != nil && s.Local.Datastore {
		p.From = record.From // it is in place, and only has to be completed
		return p, nil
	}
	return p, f.source(ctx, &p, o.From, s.Local)
}

// source finds what to begin with, and room for it.
func (f Founder) source(ctx context.Context, p *Plan, from string, local host.Standing) error {
	switch from {
	case Own:
		if !local.Datastore {
			return fmt.Errorf("%w: there is no datastore in %s%s", ErrNoSource, f.Datastore, asideHint(local))
		}
		p.From = Own
		return snapshots.Room(f.Datastore, 0)
	case Latest:
		newest, err := snapshots.Latest(f.Snapshots)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoSource, err)
		}
		from = newest.Path
	}
	var err error
	if p.From, err = filepath.Abs(from); err != nil {
		return fmt.Errorf("founding: %w", err)
	}
	facts, err := snapshots.Verify(ctx, p.From)
	if err != nil {
		return err
	}
	p.Snapshot = &facts
	return snapshots.Room(f.Datastore, facts.Size)
}

func asideHint(local host.Standing) string {
	if len(local.Aside) == 0 {
		return ""
	}
	return fmt.Sprintf("; one was moved aside to %s: if that was an interrupted reset, its copy is the newest snapshot: --from latest", local.Aside[len(local.Aside)-1].Path)
}

// Reset makes what was planned, after a second look. step hears what it is at.
func (f Founder) Reset(ctx context.Context, p Plan, o ResetOptions, step func(string)) (Plan, error) {
	again, err := f.PlanReset(ctx, o)
	if err != nil {
		return p, err
	}
	if !p.same(again) || p.From != again.From {
		return again, ErrChanged
	}
	if p.From == Own {
		step("copying this host's datastore to " + f.Snapshots + ", and reading it to its end")
		saved, err := snapshots.Copy(ctx, f.Datastore, f.Host, f.Snapshots)
		if err != nil {
			return p, fmt.Errorf("%w; nothing was moved: begin with a snapshot: --from latest", err)
		}
		p.From, p.Snapshot = saved.Path, &saved.Facts
		if err := snapshots.Room(f.Datastore, saved.Size); err != nil {
			return p, err
		}
	}
	making, err := f.open(ctx, func(l host.Standing) []membership.Refusal {
		if !p.GoesOn && l.Datastore != p.Aside {
			// Taken for one that this made, it would be marked as the new cluster's.
			return []membership.Refusal{reject(membership.DatastorePresent, f.Host, "look again", "a datastore has come or gone here since it was looked at")}
		}
		return resetHere(f.Host, l, o.Aside || o.From == Own)
	})
	if err != nil {
		return p, err
	}
	defer making.Close()
	if p.Aside {
		step("moving the datastore aside")
		local, err := host.StandingOf(f.Data, f.Datastore, Identity)
		if err != nil {
			return p, err
		}
		if p.AsideAs, err = making.Aside(local.Member); err != nil {
			return p, err
		}
	}
	return p, making.Make(p.record(), func(dir string) error {
		step("making the datastore of cluster " + p.Cluster + " from " + p.From)
		made, err := snapshots.Restore(ctx, p.From, snapshots.RestoreOptions{Dir: dir, Name: f.Host, Cluster: p.Members, Token: p.Token, Bump: p.bump})
		p.Revision = made.Revision
		return err
	})
}

func names(initial map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(initial)), ",")
}
