package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"suffrage/membership"
)

// K3s is what differs on a host whose etcd runs within a K3s server. The server
// adds itself as a learner when it is started without a datastore, so an order to
// start it names no member; a removed one would move its datastore aside and join
// again at its next start, so the fence is all that keeps it away; and a host that
// is no server may run K3s's agent instead. Read from K3s's source, pkg/etcd.
type K3s struct {
	// Config is where K3s reads settings beside config.yaml, in the order of names:
	// /etc/rancher/k3s/config.yaml.d.
	Config string
	// Agent is what this host runs while it is no server, nil for nothing. It starts
	// only while the fence is up: AssertPathExists=DATA/fence.json.
	Agent Unit
}

const (
	// k3sFile is the one file of settings that is written here. Its name comes
	// behind those that people give, so that what it says counts.
	k3sFile = "99-suffrage.yaml"
	// k3sPort is where a K3s server takes others in (--https-listen-port).
	k3sPort = "6443"
)

// flavour says who runs etcd here, for a refusal.
func (s *Server) flavour() string {
	if s.o.K3s != nil {
		return "K3s runs etcd here (flavour), which adds itself"
	}
	return "here a member of Suffrage runs (flavour), which joins as the one that it is told"
}

// server is where this host joins, as a server or as an agent: a peer that is not
// itself. Empty where no K3s runs.
func (k *K3s) server(self string, peers map[string]string) (address string, err error) {
	if k == nil {
		return "", nil
	}
	own := hostOf(peers[self])
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		if at := hostOf(peers[name]); at != "" && at != own {
			return "https://" + net.JoinHostPort(at, k3sPort), nil
		}
	}
	return "", refusal(BadOrder, "the peers name no other server that %s could join at", self)
}

func hostOf(peer string) string {
	u, err := url.Parse(peer)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// point writes down where this host joins. --cluster-init is said to be off, or a
// server that was removed could come up as a new cluster of one.
func (k *K3s) point(f files, server string) error {
	if err := os.MkdirAll(k.Config, 0o755); err != nil {
		return fmt.Errorf("host: make K3s's directory of settings: %w", err)
	}
	text := fmt.Sprintf("# Written by Suffrage at %s. It goes before what other files say.\nserver: %s\ncluster-init: false\n",
		time.Now().UTC().Format(time.RFC3339), server)
	return files{path: k.Config, point: f.point}.replace(k3sFile, []byte(text))
}

// heeded refuses where K3s would not go by what point writes: it would join
// elsewhere, or make a cluster of its own.
func (k *K3s) heeded() error {
	if k == nil {
		return nil
	}
	s, err := ReadSettings(k.Config)
	if err != nil {
		return err
	}
	if flag, by := s.Overriding(k.Config); flag != "" {
		return refusal(membership.NotQualified, "%s sets %s, and K3s goes by the last file by name, not by %s: take it out of that file", by.From, flag, k3sFile)
	}
	return nil
}

// makeRoom readies this host for its server. The agent ends while the fence is
// still up: both would run the same containers, and at a boot in between the
// fence says which of them starts.
func (k *K3s) makeRoom(ctx context.Context, f files, server string) error {
	if err := errors.Join(k.point(f, server), k.whole(f)); err != nil {
		return err
	}
	return k.stopAgent(ctx, f)
}

func (k *K3s) stopAgent(ctx context.Context, f files) error {
	if k == nil || k.Agent == nil {
		return nil
	}
	f.at("stop", "agent unit")
	return k.Agent.Stop(ctx)
}

// startAgent brings back what a host runs that is no server. Where none is given
// it goes on to look for the same one.
func (k *K3s) startAgent(ctx context.Context, f files, server string) error {
	if k == nil {
		return nil
	}
	if server != "" {
		if err := k.point(f, server); err != nil {
			return err
		}
	}
	if k.Agent == nil {
		return nil
	}
	f.at("start", "agent unit")
	return k.Agent.Start(ctx)
}
