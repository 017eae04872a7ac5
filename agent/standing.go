package agent

import (
	"context"
	"fmt"
	"net/http"

	"suffrage/identity"
	"suffrage/membership/host"
)

// serveStanding answers GET /v1/standing: the files as they are now, and not as
// some round saw them.
func (a *Agent) serveStanding(w http.ResponseWriter, req *http.Request) {
	if _, err := identity.PeerName(*req.TLS, a.roster.Load()); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if a.o.Standing == nil {
		http.Error(w, "this agent does not know where its host keeps a datastore", http.StatusNotImplemented)
		return
	}
	s, err := a.o.Standing()
	if err != nil {
		http.Error(w, clip(err.Error()), http.StatusInternalServerError)
		return
	}
	a.write(w, s)
}

// Standing asks the agent of a host what that host has of any cluster. The
// context bounds the time.
func (c *Client) Standing(ctx context.Context, name string) (host.Standing, error) {
	var s host.Standing
	h, ok := c.roster().ByName(name)
	if !ok {
		return s, fmt.Errorf("agent: standing of %s: the roster has no host of that name", name)
	}
	if err := c.talk(ctx, h, http.MethodGet, "/v1/standing", nil, nil, &s); err != nil {
		return s, fmt.Errorf("agent: standing of host %s at %s: %w", h.Name, h.AddrPort(), c.explain(ctx, err, h))
	}
	return s, nil
}
