package k3s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"suffrage/apiserver"
)

// Etcd is a client of the etcd of these hosts, with the first one's certificate.
// Close it when done.
func (f *Fleet) Etcd(hosts ...*Host) (*clientv3.Client, error) {
	ca, cert, key := hosts[0].Certificate()
	cfg, err := transport.TLSInfo{TrustedCAFile: ca, CertFile: cert, KeyFile: key}.ClientConfig()
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, h := range hosts {
		urls = append(urls, h.ClientURL())
	}
	return clientv3.New(clientv3.Config{Endpoints: urls, TLS: cfg, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

// Members asks a host's etcd for the members.
func (f *Fleet) Members(ctx context.Context, from *Host) ([]*pb.Member, error) {
	cl, err := f.Etcd(from)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	list, err := cl.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	return list.Members, nil
}

// MemberName is what a host's name file says.
func (h *Host) MemberName() (string, error) {
	text, err := os.ReadFile(h.Datastore() + "/name")
	return string(text), err
}

// WaitVoting waits until a host's own etcd says that it votes. That k3s ends by
// itself fails the test, unless its unit starts it again.
func (f *Fleet) WaitVoting(h *Host) {
	f.t.Helper()
	f.Wait(h.Name+" votes", func(ctx context.Context) error {
		if h.Restart == 0 && !h.Running() {
			f.t.Fatalf("%s has ended", h.Name)
		}
		return f.votes(ctx, h)
	})
}

func (f *Fleet) votes(ctx context.Context, h *Host) error {
	cl, err := f.Etcd(h)
	if err != nil {
		return err
	}
	defer cl.Close()
	s, err := cl.Status(ctx, h.ClientURL())
	switch {
	case err != nil:
		return err
	case s.IsLearner:
		return errors.New("it is a learner")
	case s.Leader == 0:
		return errors.New("there is no leader")
	}
	return nil
}

// Kubeconfig is the administrator's at a server whose API server is ready.
func (f *Fleet) Kubeconfig(ctx context.Context) (string, error) {
	err := errors.New("no host runs an API server")
	for _, h := range f.Hosts {
		if !h.Running() {
			continue
		}
		file, missing := h.Kubeconfig()
		if missing != nil {
			continue
		}
		if err = ready(ctx, file); err == nil {
			return file, nil
		}
	}
	return "", err
}

func ready(ctx context.Context, kubeconfig string) error {
	c, err := client(kubeconfig)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Verb("GET").AbsPath("/readyz").Do(ctx).Error()
}

// WaitAPI waits until some API server is ready.
func (f *Fleet) WaitAPI() {
	f.t.Helper()
	f.Wait("an API server is ready", func(ctx context.Context) error {
		_, err := f.Kubeconfig(ctx)
		return err
	})
}

// Node reads a Node.
func (f *Fleet) Node(ctx context.Context, name string) (*core.Node, error) {
	n := &core.Node{}
	err := f.api(ctx, func(c *apiserver.Client) error {
		return c.Verb("GET").Resource("nodes").Name(name).Do(ctx).Into(n)
	})
	return n, err
}

// Annotate sets annotations of a Node; nil takes one away.
func (f *Fleet) Annotate(ctx context.Context, name string, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	return f.api(ctx, func(c *apiserver.Client) error {
		return c.Verb("PATCH").SetHeader("Content-Type", string(types.MergePatchType)).Resource("nodes").Name(name).Body(patch).Do(ctx).Error()
	})
}

// DeleteNode deletes a Node, which stays until its finalizers are gone.
func (f *Fleet) DeleteNode(ctx context.Context, name string) error {
	return f.api(ctx, func(c *apiserver.Client) error { return c.Verb("DELETE").Resource("nodes").Name(name).Do(ctx).Error() })
}

func (f *Fleet) api(ctx context.Context, do func(*apiserver.Client) error) error {
	file, err := f.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	c, err := client(file)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

func client(kubeconfig string) (*apiserver.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("k3s: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := core.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return apiserver.New(cfg, core.SchemeGroupVersion, scheme)
}
