package main

import (
	"context"
	"encoding/json"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// apiClient is what the double needs of the API. client-go's typed clients would
// bring a dozen modules that nothing else in this one needs.
type apiClient struct{ core, leases rest.Interface }

// client makes one that talks to whichever server is ready.
func (b *balancer) client() (*apiClient, error) {
	scheme := runtime.NewScheme()
	if err := core.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, err
	}
	of := func(path string, v schema.GroupVersion) (rest.Interface, error) {
		return rest.RESTClientFor(&rest.Config{Host: "https://any", APIPath: path, Transport: b, QPS: -1, Timeout: 30 * time.Second,
			ContentConfig: rest.ContentConfig{GroupVersion: &v, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()}})
	}
	first, err := of("/api", core.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	leases, err := of("/apis", coordination.SchemeGroupVersion)
	return &apiClient{first, leases}, err
}

func (c *apiClient) list(ctx context.Context, selector string) ([]core.Node, error) {
	var l core.NodeList
	err := c.core.Get().Resource("nodes").Param("labelSelector", selector).Do(ctx).Into(&l)
	return l.Items, err
}

func (c *apiClient) create(ctx context.Context, n *core.Node) error {
	return c.core.Post().Resource("nodes").Body(n).Do(ctx).Error()
}

// update writes n and makes it what the server has then.
func (c *apiClient) update(ctx context.Context, n *core.Node) error {
	var got core.Node
	if err := c.core.Put().Resource("nodes").Name(n.Name).Body(n).Do(ctx).Into(&got); err != nil {
		return err
	}
	got.DeepCopyInto(n)
	return nil
}

// status changes what a Node's status says.
func (c *apiClient) status(ctx context.Context, node string, status any) error {
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return c.core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(node).SubResource("status").Body(text).Do(ctx).Error()
}

func (c *apiClient) condition(ctx context.Context, node string, cond core.NodeCondition) error {
	return c.status(ctx, node, map[string]any{"conditions": []core.NodeCondition{cond}})
}

const (
	leaseSpace = "kube-system"
	leaseName  = "k3s-etcd"
)

func (c *apiClient) lease(ctx context.Context) (*coordination.Lease, error) {
	var l coordination.Lease
	err := c.leases.Get().Namespace(leaseSpace).Resource("leases").Name(leaseName).Do(ctx).Into(&l)
	return &l, err
}

// setLease writes the Lease: anew, or over the version that l is of.
func (c *apiClient) setLease(ctx context.Context, l *coordination.Lease) error {
	if l.ResourceVersion == "" {
		l.ObjectMeta = meta.ObjectMeta{Namespace: leaseSpace, Name: leaseName}
		return c.leases.Post().Namespace(leaseSpace).Resource("leases").Body(l).Do(ctx).Into(l)
	}
	return c.leases.Put().Namespace(leaseSpace).Resource("leases").Name(leaseName).Body(l).Do(ctx).Into(l)
}
