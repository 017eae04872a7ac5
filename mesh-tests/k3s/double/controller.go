package main

import (
	"context"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
)

// lookEvery is how soon a change of a Node is seen. K3s watches; looking is
// simpler and soon enough.
const lookEvery = 200 * time.Millisecond

// onNodes calls sync with each Node that there is and again when it has changed,
// and again after an error, later each time.
func onNodes(ctx context.Context, api *apiClient, log *slog.Logger, sync func(context.Context, *core.Node) error) error {
	type state struct {
		version string
		again   time.Time     // after an error
		wait    time.Duration // before the next time, after another one
	}
	known := map[string]state{}
	for pause(ctx, lookEvery) {
		nodes, err := api.list(ctx, "")
		if err != nil {
			continue // whoever serves it is away
		}
		for _, n := range nodes {
			k := known[n.Name]
			if k.version == n.ResourceVersion && (k.again.IsZero() || time.Now().Before(k.again)) {
				continue
			}
			if k.version != n.ResourceVersion {
				k = state{version: n.ResourceVersion}
			}
			if err := sync(ctx, &n); err != nil && ctx.Err() == nil {
				log.Error("error syncing", "host", n.Name, "err", err)
				k.wait = min(max(100*time.Millisecond, 2*k.wait), time.Minute)
				k.again = time.Now().Add(k.wait)
			} else {
				k.again = time.Time{}
			}
			known[n.Name] = k
		}
	}
	return nil
}
