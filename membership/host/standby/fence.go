package standby

import (
	"context"
	"errors"
	"fmt"

	"suffrage/membership/host"
)

// fence looks at what keeps a standby's server from starting by itself.
func (h Host) fence() Check {
	const name = "fence"
	s, err := h.standing()
	switch {
	case err != nil:
		return unknown(name, err)
	case s.Fence != "":
		return ok(name, "it is up: "+s.Fence)
	}
	if why := h.unfenced(s); why != "" {
		return ok(name, "none, and none is needed: "+why)
	}
	return missing(name, "a standby must not start before it is given a vote, and nothing keeps it from that", prepares)
}

// unfenced says why a host needs no fence, or nothing where it does.
func (h Host) unfenced(s host.Standing) string {
	switch {
	case s.Datastore || s.Running || s.Role == host.Voter:
		return "this host is a voter"
	case h.Founder && h.K3s == nil && s.Role == "" && s.Record == nil:
		return "initial_cluster names this host, and a member without a datastore does not start"
	}
	return ""
}

// datastore looks for one that a server would go on with instead of joining.
func (h Host) datastore(ctx context.Context) Check {
	const name = "datastore"
	s, err := h.standing()
	if err != nil {
		return unknown(name, err)
	}
	if !s.Datastore {
		return ok(name, "none in "+h.Datastore+", as it has to be before a host joins")
	}
	whose := "a datastore lies in " + h.Datastore
	if s.Cluster != "" {
		whose += fmt.Sprintf(" (member %s of cluster %s)", s.Member, s.Cluster)
	}
	aside := fmt.Sprintf("if nobody needs that member, and nothing runs: mv %s %s.old", h.Datastore, h.Datastore)
	running, _, err := h.runs(ctx)
	switch {
	case s.Role == host.Standby:
		return wrong(name, whose+", and this host is a standby: its server would go on with it instead of joining", aside)
	case s.Role == host.Voter, s.Record != nil, s.Running, running:
		return ok(name, whose+": this host is a voter")
	case err != nil:
		return unknown(name, errors.Join(errors.New(whose), err))
	}
	return wrong(name, whose+", nothing runs it, and no file says that this host is a voter", aside)
}
