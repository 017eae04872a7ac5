package main

import (
	"context"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	labelETCD         = "node-role.kubernetes.io/etcd"
	labelControlPlane = "node-role.kubernetes.io/control-plane"

	annotationName    = "etcd.k3s.cattle.io/node-name"
	annotationAddress = "etcd.k3s.cattle.io/node-address"
	annotationRemove  = "etcd.k3s.cattle.io/remove"
	annotationRemoved = "etcd.k3s.cattle.io/removed-node-name"

	conditionVoter = core.NodeConditionType("EtcdIsVoter")
)

// register makes the Node once, as a kubelet does when it starts: a Node that is
// deleted later stays away until the next start.
func register(ctx context.Context, o Options, b *balancer, log *slog.Logger) error {
	api, err := b.client()
	if err != nil {
		return err
	}
	for said := ""; ; {
		err := b.identify(ctx, o)
		if err == nil {
			err = registerOnce(ctx, o, api)
		}
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if err.Error() != said {
			log.Info("the Node is not registered yet", "reason", err)
			said = err.Error()
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func registerOnce(ctx context.Context, o Options, api *apiClient) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: o.NodeName, Labels: map[string]string{
		"kubernetes.io/hostname": o.NodeName, "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "k3s",
	}}}
	if err := api.create(ctx, n); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	addresses := []core.NodeAddress{{Type: core.NodeInternalIP, Address: o.NodeIP}, {Type: core.NodeHostName, Address: o.NodeName}}
	if err := api.status(ctx, o.NodeName, map[string]any{"addresses": addresses}); err != nil {
		return err
	}
	return api.condition(ctx, o.NodeName, core.NodeCondition{
		Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", Message: "there is no kubelet here",
		LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now(),
	})
}
