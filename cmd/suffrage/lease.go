package main

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease/kubernetes"
	"suffrage/membership/etcd"
)

// Where the Lease can be.
const (
	inEtcd       = "etcd"
	inKubernetes = "kubernetes"
)

// openLease is the shared Lease, where the settings say that it is; close it when
// done.
func (s Settings) openLease(client *clientv3.Client) (l etcd.Lease, closeLease func(), err error) {
	if s.Controller.LeaseStore == inEtcd {
		return etcd.OwnLease(client), func() {}, nil
	}
	server, err := s.Kubernetes.Server()
	if err != nil {
		return etcd.Lease{}, nil, fmt.Errorf("controller.lease_store %s: %w", inKubernetes, err)
	}
	store, err := kubernetes.New(server, s.Kubernetes.Namespace)
	if err != nil {
		return etcd.Lease{}, nil, fmt.Errorf("controller.lease_store %s: %w", inKubernetes, err)
	}
	return etcd.Lease{Store: store, Key: store.EtcdKey()}, store.Close, nil
}
