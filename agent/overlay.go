package agent

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/probes"
)

// readOverlay asks Tailscale. A host without it has nothing that is broken.
func (a *Agent) readOverlay(ctx context.Context, _ time.Duration) error {
	peers := a.peerAddresses()
	o, err := probes.ReadOverlay(ctx, a.o.Config.TailscaleSocket, peers)
	note := ""
	if err != nil {
		note = clip(strings.TrimPrefix(err.Error(), "probes: overlay: ")) // a fact for people, not an error
	} else if len(o.Paths) == 0 {
		note = "Tailscale reaches none of the roster's hosts"
	}
	now := a.record.now()
	changed := a.paths.take(o.Paths, now)
	a.paths.forget(peers)
	a.record.tell(func(f *fitness.Facts) {
		f.Paths, f.OverlayNote, f.OverlayExpires = o.Paths, note, 0
		if !o.KeyExpires.IsZero() {
			// It is said by the wall clock, a report by a clock that is never set.
			f.OverlayExpires = max(now+min(time.Until(o.KeyExpires).Microseconds(), maxExpiry), 1)
		}
	})
	for _, p := range changed {
		a.log.Info("path changed", "peer", p.Peer, "path", p.String())
	}
	if errors.Is(err, probes.ErrNoOverlay) {
		return nil
	}
	return err
}

// seenPaths are the last path to each peer that this agent saw. A path that is gone
// for a while, as that of a peer that boots, is remembered.
type seenPaths map[string]fitness.Path

// take fills in since when each path is of its kind, and what it was before; it
// gives those that have just become another.
func (s seenPaths) take(paths []fitness.Path, now int64) (changed []fitness.Path) {
	for i := range paths {
		p := &paths[i]
		last, seen := s[p.Peer]
		switch {
		case !seen:
			p.Since = now
		case last.Kind == p.Kind:
			p.Since, p.Before = last.Since, last.Before
		default:
			p.Since, p.Before = now, last.Kind
			changed = append(changed, *p)
		}
		s[p.Peer] = *p
	}
	return changed
}

// forget drops who is no longer in the roster.
func (s seenPaths) forget(peers map[string]netip.Addr) {
	maps.DeleteFunc(s, func(name string, _ fitness.Path) bool { return !peers[name].IsValid() })
}
