package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease/kubernetes"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/membership/kube"
)

// Where the Lease can be.
const (
	inEtcd       = "etcd"
	inKubernetes = "kubernetes"
)

// shared is what all hosts share beside keys of Suffrage's in etcd.
type shared struct {
	lease etcd.Lease
	nodes *kube.Nodes // whose annotations are marks too; nil for none
	close func()
}

// open gives the shared Lease, where the settings say that it is, and with
// Kubernetes the Nodes; close it when done.
func (s Settings) open(client *clientv3.Client) (shared, error) {
	if s.Controller.LeaseStore == inEtcd {
		return shared{lease: etcd.OwnLease(client), close: func() {}}, nil
	}
	server, err := s.Kubernetes.Server()
	if err != nil {
		return shared{}, fmt.Errorf("controller.lease_store %s: %w", inKubernetes, err)
	}
	store, err := kubernetes.New(server, s.Kubernetes.Namespace)
	if err != nil {
		return shared{}, err
	}
	nodes, err := kube.New(server)
	if err != nil {
		return shared{}, err
	}
	return shared{
		lease: etcd.Lease{Store: store, Key: store.EtcdKey()},
		nodes: nodes,
		close: func() { store.Close(); nodes.Close() },
	}, nil
}

// marks are what the owner says of hosts in etcd and on their Nodes. With an
// error those that could be read are given, for display. Beside them is what else
// is read on Nodes.
func marks(ctx context.Context, kv clientv3.KV, nodes *kube.Nodes) (kube.Look, error) {
	said, err := etcd.Marks(ctx, kv)
	if nodes == nil {
		return kube.Look{Marks: said}, err
	}
	look, onErr := nodes.Look(ctx)
	all := map[string]membership.Mark{}
	for host, m := range look.Marks {
		all[host] = said[host].And(m)
	}
	for host, m := range said {
		if _, ok := look.Marks[host]; !ok {
			all[host] = m
		}
	}
	look.Marks = all
	return look, errors.Join(err, onErr)
}
