// Package kube is Kubernetes as the owner meets Suffrage there: annotations on
// Nodes, whose names are those of the roster, by which the owner says what may be
// done with hosts; and other annotations and Events there, by which the controller
// that leads says what it measured, decided and does.
//
// It reads through the API server's quorum reads, and never guesses: a mark that is
// not what docs/kubernetes.md says makes all marks unreadable, with the Node and
// the annotation named. What it writes is for people, and nothing waits for it: see
// Writer.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"suffrage/apiserver"
	"suffrage/membership"
)

const (
	page     = 50   // Nodes in one answer
	maxNodes = 2000 // as many as marks in etcd
	maxSigns = 20   // of others: one is enough to stay away
	// metadataOnly asks for a list without specs and states.
	metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Nodes are those of one cluster.
type Nodes struct{ api, events *apiserver.Client }

// New uses the API server that cfg names; Close it when done.
func New(cfg *rest.Config) (*Nodes, error) {
	core := schema.GroupVersion{Version: "v1"}
	scheme := runtime.NewScheme()
	meta.AddToGroupVersion(scheme, core)
	api, err := apiserver.New(cfg, core, scheme)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	events, err := apiserver.New(cfg, schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}, scheme)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	return &Nodes{api, events}, nil
}

// Close closes the connections.
func (n *Nodes) Close() {
	n.api.Close()
	n.events.Close()
}

// Marks are what the owner says on Nodes, by name, for those on which something is
// said. One that cannot be read is an error that names it; the others are still
// given, for display. Beside them are the signs of other controllers of membership.
func (n *Nodes) Marks(ctx context.Context) (map[string]membership.Mark, []membership.Foreign, error) {
	nodes, err := n.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	marks := map[string]membership.Mark{}
	var foreign []membership.Foreign
	var errs []error
	for _, node := range nodes {
		m, err := markOf(node)
		if err != nil {
			errs = append(errs, err)
		} else if m != (membership.Mark{}) {
			marks[node.Name] = m
		}
		if len(foreign) < maxSigns {
			foreign = append(foreign, signs(node)...)
		}
	}
	return marks, foreign, errors.Join(errs...)
}

// all are the Nodes without their specs and states. A list whose next page was
// forgotten (etcd was compacted meanwhile) begins anew, once.
func (n *Nodes) all(ctx context.Context) (nodes []meta.PartialObjectMetadata, err error) {
	anew := false
	for next := ""; ; {
		list, err := n.list(ctx, next)
		if next != "" && !anew && apierrors.IsResourceExpired(err) {
			anew, next, nodes = true, "", nil
			continue
		}
		if err != nil {
			return nil, n.api.Failed("kube: read Nodes", err, "")
		}
		nodes = append(nodes, list.Items...)
		if next = list.Continue; next == "" {
			return nodes, nil
		}
		if len(nodes) > maxNodes {
			return nil, n.api.Failed("kube: read Nodes", fmt.Errorf("there are more than %d", maxNodes), "")
		}
	}
}

func (n *Nodes) list(ctx context.Context, next string) (list meta.PartialObjectMetadataList, err error) {
	req := n.api.Verb("GET").Resource("nodes").SetHeader("Accept", metadataOnly).Param("limit", fmt.Sprint(page))
	if next != "" {
		req.Param("continue", next)
	}
	res := req.Do(ctx)
	if err := res.Error(); err != nil { // Raw would not say what the server says
		return list, err
	}
	text, err := res.Raw()
	if err != nil {
		return list, err
	}
	err = json.Unmarshal(text, &list)
	return list, err
}
