// Package kube is Kubernetes as the owner uses it to say what may be done with
// hosts: annotations on Nodes, whose names are those of the roster.
//
// It reads only, through the API server's quorum reads, and never guesses: a value
// that is not what docs/kubernetes.md says makes all marks unreadable, with the
// Node and the annotation named.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
	// metadataOnly asks for a list without specs and states.
	metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Nodes are those of one cluster.
type Nodes struct{ api *apiserver.Client }

// New uses the API server that cfg names; Close it when done.
func New(cfg *rest.Config) (*Nodes, error) {
	core := schema.GroupVersion{Version: "v1"}
	scheme := runtime.NewScheme()
	meta.AddToGroupVersion(scheme, core)
	api, err := apiserver.New(cfg, core, scheme)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	return &Nodes{api}, nil
}

// Close closes the connections.
func (n *Nodes) Close() { n.api.Close() }

// Marks are what the owner says on Nodes, by name, for those on which something is
// said. One that cannot be read is an error that names it; the others are still
// given, for display.
func (n *Nodes) Marks(ctx context.Context) (map[string]membership.Mark, error) {
	marks := map[string]membership.Mark{}
	var errs []error
	seen := 0
	for next := ""; ; {
		list, err := n.list(ctx, next)
		if err != nil {
			return nil, n.api.Failed("kube: read Nodes", err, "")
		}
		for _, node := range list.Items {
			m, err := markOf(node)
			if err != nil {
				errs = append(errs, err)
			} else if m != (membership.Mark{}) {
				marks[node.Name] = m
			}
		}
		if next = list.Continue; next == "" {
			return marks, errors.Join(errs...)
		}
		if seen += len(list.Items); seen > maxNodes {
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
