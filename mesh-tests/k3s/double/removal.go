package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	core "k8s.io/api/core/v1"
)

// finalizer keeps a deleted Node until its member is removed.
const finalizer = "wrangler.cattle.io/managed-etcd-controller"

// controllers are all that talk to the API.
func (s *server) controllers(c *stage) {
	c.start("node", func(ctx context.Context) error { return register(ctx, s.o, s.kube, s.log) })
	c.start("metadata", s.metadata)
	if !s.o.DisableETCD {
		c.start("learners", s.manageLearners)
	}
	if !s.o.DisableAPIServer {
		c.start("removal", s.removal)
	}
}

// metadata keeps this server's labels and annotations on its Node.
func (s *server) metadata(ctx context.Context) error {
	api, err := s.kube.client()
	if err != nil {
		return err
	}
	return onNodes(ctx, api, s.log, func(ctx context.Context, n *core.Node) error {
		if n.Name != s.o.NodeName || !s.mark(n) {
			return nil
		}
		return api.update(ctx, n)
	})
}

// mark gives whether the Node did not say it all yet.
func (s *server) mark(n *core.Node) bool {
	want := func(m *map[string]string, key, v string) bool {
		old, there := (*m)[key]
		switch {
		case v == "" && !there, v != "" && old == v:
			return false
		case v == "":
			delete(*m, key)
			return true
		}
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[key] = v
		return true
	}
	name, address, etcd := s.name, s.o.NodeIP, "true"
	if s.o.DisableETCD {
		name, address, etcd = "", "", ""
	}
	changed := want(&n.Annotations, annotationName, name)
	changed = want(&n.Annotations, annotationAddress, address) || changed
	changed = want(&n.Labels, labelETCD, etcd) || changed
	if !s.o.DisableAPIServer {
		changed = want(&n.Labels, labelControlPlane, "true") || changed
	}
	return changed
}

// removal runs the controller that removes members while this server has the
// Lease. Servers without an API server never do.
func (s *server) removal(ctx context.Context) error {
	for !s.up.serving.Load() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := s.announce(ctx); err != nil {
		return err
	}
	api, err := s.kube.client()
	if err != nil {
		return err
	}
	r := &remover{s, api}
	return (&elector{api: api, identity: s.o.NodeName, duration: s.o.Lease}).run(ctx, func(ctx context.Context) error {
		s.log.Info("starting managed etcd member removal controller")
		return onNodes(ctx, api, s.log, r.sync)
	})
}

// remover is the removal controller.
type remover struct {
	*server
	api *apiClient
}

func (r *remover) sync(ctx context.Context, n *core.Node) error {
	if err := r.onChange(ctx, n); err != nil {
		return err
	}
	return r.onRemove(ctx, n)
}

// onChange removes the member of a Node that asks for it. An annotation of an
// earlier removal makes the request vanish, or be taken for done.
func (r *remover) onChange(ctx context.Context, n *core.Node) error {
	_, etcd := n.Labels[labelETCD]
	asked, is := n.Annotations[annotationRemove]
	if !etcd || !is {
		return nil
	}
	if removed, before := n.Annotations[annotationRemoved]; before {
		if current, there := n.Annotations[annotationName]; there && current != removed {
			r.log.Info("resetting removed node flag: another member than the removed one is there", "host", n.Name)
			delete(n.Annotations, annotationRemoved)
			n.Annotations[annotationRemove] = "false"
			return r.api.update(ctx, n)
		}
		return nil
	}
	if !strings.EqualFold(asked, "true") {
		return nil
	}
	name, err := r.removePeer(ctx, n)
	if err != nil {
		return err
	}
	n.Annotations[annotationRemoved] = name
	delete(n.Annotations, annotationName)
	delete(n.Annotations, annotationAddress)
	return r.api.update(ctx, n)
}

// onRemove removes the member of a Node that is deleted.
func (r *remover) onRemove(ctx context.Context, n *core.Node) error {
	at := slices.Index(n.Finalizers, finalizer)
	switch {
	case n.DeletionTimestamp == nil && at < 0:
		n.Finalizers = append(n.Finalizers, finalizer)
		return r.api.update(ctx, n)
	case n.DeletionTimestamp == nil || at < 0:
		return nil
	}
	_, etcd := n.Labels[labelETCD]
	done := strings.EqualFold(n.Annotations[annotationRemove], "true") && n.Annotations[annotationRemoved] != ""
	if etcd && !done {
		if _, err := r.removePeer(ctx, n); err != nil {
			return err
		}
	}
	n.Finalizers = slices.Delete(n.Finalizers, at, at+1)
	return r.api.update(ctx, n)
}

// removePeer removes the member whose name and address are the Node's; that
// there is none is no error. Nothing is done about it being the leader.
func (r *remover) removePeer(ctx context.Context, n *core.Node) (string, error) {
	name, address := n.Annotations[annotationName], n.Annotations[annotationAddress]
	if name == "" || address == "" {
		return "", fmt.Errorf("annotations %s and %s for node %s not found", annotationName, annotationAddress, n.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	list, err := r.client.MemberList(ctx)
	if err != nil {
		return "", err
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner {
			voters++
		}
	}
	for _, m := range list.Members {
		if m.Name != name || !slices.ContainsFunc(m.PeerURLs, func(u string) bool { return hostIn(u) == address }) {
			continue
		}
		if !m.IsLearner && voters == 1 {
			return "", fmt.Errorf("not removing %s: it is the last voting member of the etcd cluster", name)
		}
		r.log.Info("removing from etcd", "member", name, "id", fmt.Sprintf("%x", m.ID), "address", address)
		if _, err := r.client.MemberRemove(ctx, m.ID); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
			return "", err
		}
	}
	return name, nil
}
