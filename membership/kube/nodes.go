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
	// pageWhole is of Nodes with their states, most of which is a list of at most
	// fifty images: twenty kilobytes, where metadata are three.
	pageWhole = 20
	wholly    = "application/json"
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

// Look is what is read on Nodes, by name.
type Look struct {
	// Marks are what the owner says, for those on which something is said.
	Marks map[string]membership.Mark
	// States are the conditions, of all Nodes.
	States map[string]membership.Node
	// Foreign are the signs of other controllers of membership.
	Foreign []membership.Foreign
}

// Look reads the Nodes. A mark that cannot be read is an error that names it; the
// others are still given, for display.
func (n *Nodes) Look(ctx context.Context) (l Look, err error) {
	nodes, err := pages[whole](ctx, n, wholly, pageWhole)
	if err != nil {
		return l, err
	}
	l.Marks, l.States = map[string]membership.Mark{}, make(map[string]membership.Node, len(nodes))
	var errs []error
	for _, node := range nodes {
		m, err := markOf(node.PartialObjectMetadata)
		if err != nil {
			errs = append(errs, err)
		} else if m != (membership.Mark{}) {
			l.Marks[node.Name] = m
		}
		l.States[node.Name] = node.state()
		if len(l.Foreign) < maxSigns {
			l.Foreign = append(l.Foreign, signs(node.PartialObjectMetadata)...)
		}
	}
	return l, errors.Join(errs...)
}

// all are the Nodes without their specs and states.
func (n *Nodes) all(ctx context.Context) ([]meta.PartialObjectMetadata, error) {
	return pages[meta.PartialObjectMetadata](ctx, n, metadataOnly, page)
}

// pages are all Nodes, in a form, so many in an answer. A list whose next page was
// forgotten (etcd was compacted meanwhile) begins anew, once.
func pages[T any](ctx context.Context, n *Nodes, form string, size int) (nodes []T, err error) {
	anew := false
	for next := ""; ; {
		list, err := list[T](ctx, n, form, size, next, "")
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

// listOf is a list of Nodes, of which T is kept.
type listOf[T any] struct {
	meta.ListMeta `json:"metadata"`
	Items         []T `json:"items"`
}

func list[T any](ctx context.Context, n *Nodes, form string, size int, next, name string) (l listOf[T], err error) {
	req := n.api.Verb("GET").Resource("nodes").SetHeader("Accept", form).Param("limit", fmt.Sprint(size))
	if next != "" {
		req.Param("continue", next)
	}
	if name != "" {
		req.Param("fieldSelector", "metadata.name="+name)
	}
	res := req.Do(ctx)
	if err := res.Error(); err != nil { // Raw would not say what the server says
		return l, err
	}
	text, err := res.Raw()
	if err != nil {
		return l, err
	}
	err = json.Unmarshal(text, &l)
	return l, err
}
