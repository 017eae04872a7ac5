package kube

import (
	"fmt"
	"strconv"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"suffrage/membership"
)

// What other controllers of etcd's membership leave on the Nodes that they manage.
const (
	// Cluster API names the kind of what owns the machine: KubeadmControlPlane,
	// RKE2ControlPlane, KThreesControlPlane and others add and remove members; the
	// owners of workers do not.
	capiOwner    = "cluster.x-k8s.io/owner-kind"
	controlPlane = "ControlPlane"
	// Rancher labels every machine that it provisions, and removes the member of one
	// with etcd when it deletes the machine.
	rancherMachine = "rke.cattle.io/machine"
	etcdRole       = "node-role.kubernetes.io/etcd"
)

// signs of another controller of membership on a Node.
func signs(node meta.PartialObjectMetadata) (all []membership.Foreign) {
	add := func(who, format string, args ...any) {
		all = append(all, membership.Foreign{Host: node.Name, Who: who, Sign: fmt.Sprintf(format, args...)})
	}
	if kind := node.Annotations[capiOwner]; strings.HasSuffix(kind, controlPlane) {
		add("Cluster API", "annotation %s is %s", capiOwner, strconv.Quote(cut(line(kind), 100)))
	}
	if _, machine := node.Labels[rancherMachine]; machine {
		if _, etcd := node.Labels[etcdRole]; etcd {
			add("Rancher", "there are labels %s and %s", rancherMachine, etcdRole)
		}
	}
	return all
}
