package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"suffrage/membership"
	"suffrage/membership/control"
)

// K3s's names on the Node of a server (pkg/etcd in its source). Remove asks its
// controller for the removal of the member that the other two name; Removed is
// left behind by a removal, and where it names the member that is there, or no
// member is named, a new request vanishes.
const (
	k3sRemove  = "etcd.k3s.cattle.io/remove"
	k3sName    = "etcd.k3s.cattle.io/node-name"
	k3sAddress = "etcd.k3s.cattle.io/node-address"
	k3sRemoved = "etcd.k3s.cattle.io/removed-node-name"
	// removal stands beside k3sRemove and says who asks, and for which member.
	removal = "suffrage.io/removal"
)

// asked is the value of the annotation suffrage.io/removal.
type asked struct {
	Member    string    `json:"member"`
	Operation string    `json:"operation"`
	Term      uint64    `json:"term"`
	At        time.Time `json:"at"`
}

// Removals reads those that are asked for on Nodes, for the View. One that is not
// Suffrage's, such as one that a restored snapshot brought back, belongs to no
// operation; one that K3s has carried out is none any more, unless Suffrage has
// still to clear it away.
func (n *Nodes) Removals(ctx context.Context) (out []membership.Removal, err error) {
	nodes, err := n.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if r, is := removalOf(node); is {
			out = append(out, r)
		}
	}
	return out, nil
}

func removalOf(node meta.PartialObjectMetadata) (r membership.Removal, is bool) {
	a := node.Annotations
	ours, said := a[removal]
	r.Host = node.Name
	var q asked
	switch err := json.Unmarshal([]byte(ours), &q); {
	case !said && a[k3sRemove] != "true", !said && a[k3sName] == "":
		return r, false // nobody asks, or it is done
	case !said:
		r.At = node.CreationTimestamp.Time
	case err != nil || q.Operation == "" || q.Member == "":
		r.Refused = fmt.Sprintf("annotation %s of Node %s cannot be read: %s", removal, node.Name, line(ours))
	default:
		r.Member, r.Operation, r.At = q.Member, q.Operation, q.At
		if a[k3sRemove] != "true" {
			r.Refused = "somebody took the annotation " + k3sRemove + " away"
		}
	}
	return r, true
}

// Requester asks K3s for removals, by the annotation that its controller acts on,
// and takes them back.
//
// K3s looks at no Lease. So a request is written only on the Node as it was read
// before the Lease was asked for the last time: a write of one that stood still
// since then comes too late once anybody else has written there, as whoever takes
// the request back does.
type Requester struct {
	Nodes *Nodes
	// Term is the Lease's under which it asks, and Check asks the Lease.
	Term  uint64
	Check func(context.Context) error
	// Members are those of etcd, of a linearizable read.
	Members func(context.Context) ([]membership.Member, error)
}

var _ control.Removals = (*Requester)(nil)

// Request is control.Removals'. K3s calls it success where no member has the name
// and the address that are on the Node, so both are compared first.
func (q *Requester) Request(ctx context.Context, term uint64, r membership.Removal) error {
	fail := func(err error) error { return fmt.Errorf("kube: request removal of %s: %w", r.Host, err) }
	switch {
	case term != q.Term:
		return fail(fmt.Errorf("asked with term %d, held with %d", term, q.Term))
	case r.Held:
		return fail(errors.New("K3s acts on a request at once, so none can be announced"))
	}
	members, err := q.Members(ctx)
	if err != nil {
		return fail(err)
	}
	node, err := q.Nodes.get(ctx, r.Host)
	if err != nil {
		return fail(err)
	}
	i := slices.IndexFunc(members, func(m membership.Member) bool { return m.ID == r.Member })
	if i < 0 {
		return fail(fmt.Errorf("member %s is not listed", r.Member))
	}
	if err := matches(node, members[i]); err != nil {
		return fail(err)
	}
	switch there, is := removalOf(node); {
	case !is:
	case there.Operation == r.Operation && there.Member == r.Member && there.Refused == "":
		return nil
	case there.Operation != r.Operation:
		return fail(fmt.Errorf("operation %q asked for it and did not take it back: suffrage operations withdraw %s", there.Operation, r.Host))
	}
	text, err := json.Marshal(asked{r.Member, r.Operation, term, r.At.UTC()})
	if err != nil {
		return fail(err)
	}
	if err := q.Check(ctx); err != nil {
		return fail(err)
	}
	if err := q.Nodes.change(ctx, node, map[string]any{k3sRemove: "true", k3sRemoved: nil, removal: string(text)}); err != nil {
		return fail(err)
	}
	return nil
}

// matches compares what is on the Node with the member, as K3s will.
func matches(node meta.PartialObjectMetadata, m membership.Member) error {
	name, address := node.Annotations[k3sName], node.Annotations[k3sAddress]
	if _, is := node.Labels[etcdRole]; !is {
		return fmt.Errorf("its Node has no label %s, without which K3s does not act: restart K3s on it", etcdRole)
	}
	if name == "" || name != m.Name {
		return fmt.Errorf("its Node names the member %q (%s) and the member's name is %q: K3s would remove nothing and call it done; restart K3s on it", name, k3sName, m.Name)
	}
	if !slices.ContainsFunc(m.PeerURLs, func(peer string) bool {
		u, err := url.Parse(peer)
		return err == nil && net.ParseIP(u.Hostname()) != nil && net.ParseIP(u.Hostname()).Equal(net.ParseIP(address))
	}) {
		return fmt.Errorf("its Node has the address %q (%s) and the member's peer URLs are %q: K3s would remove nothing and call it done; look at node-ip of K3s there", address, k3sAddress, m.PeerURLs)
	}
	return nil
}

// Withdraw is control.Removals'. The Lease is asked after the Node was read, as
// before a request: whoever lost it may not take back what the next holder asks for.
func (q *Requester) Withdraw(ctx context.Context, host, operation string) error {
	return q.Nodes.Withdraw(ctx, host, func(there membership.Removal) error {
		if there.Operation != operation {
			return fmt.Errorf("it is of operation %q, not of %s", there.Operation, operation)
		}
		return q.Check(ctx)
	})
}

// withdrawals is how often a Node that others write to is written again.
const withdrawals = 5

// Withdraw takes back the removal that is asked for on a Node, if may says so, with
// all that a removal leaves behind, and reads it back. One on a Node that is not
// there is none.
func (n *Nodes) Withdraw(ctx context.Context, host string, may func(membership.Removal) error) error {
	fail := func(err error) error { return fmt.Errorf("kube: withdraw removal of %s: %w", host, err) }
	for range withdrawals {
		node, err := n.get(ctx, host)
		if errors.Is(err, errNoNode) {
			return nil
		}
		if err != nil {
			return fail(err)
		}
		there, is := removalOf(node)
		if !is {
			return nil
		}
		if err := may(there); err != nil {
			return fail(err)
		}
		err = n.change(ctx, node, map[string]any{k3sRemove: nil, k3sRemoved: nil, removal: nil})
		if err != nil && !apierrors.IsConflict(err) {
			return fail(err)
		}
		// Read back, or written to by somebody else meanwhile: again.
	}
	return fail(errors.New("others write to its Node all the time"))
}

// get reads one Node, by a list: the right to list Nodes is there already.
func (n *Nodes) get(ctx context.Context, host string) (node meta.PartialObjectMetadata, err error) {
	list, err := list[meta.PartialObjectMetadata](ctx, n, metadataOnly, page, "", host)
	switch {
	case err != nil:
		return node, n.api.Failed("read Node "+host, err, "")
	case len(list.Items) == 0:
		return node, fmt.Errorf("%w: %s", errNoNode, host)
	}
	return list.Items[0], nil
}

// Answers asks the API server for the Node of a host; that there is none is an answer.
func (n *Nodes) Answers(ctx context.Context, host string) error {
	if _, err := n.get(ctx, host); !errors.Is(err, errNoNode) {
		return err
	}
	return nil
}

// errNoNode: K3s removes the member of a Node that is deleted.
var errNoNode = errors.New("there is no such Node")

// change changes annotations of a Node as it was read; nil takes one away.
func (n *Nodes) change(ctx context.Context, node meta.PartialObjectMetadata, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": node.ResourceVersion, "uid": node.UID, "annotations": annotations}})
	if err != nil {
		return err
	}
	err = n.api.Verb("PATCH").Resource("nodes").Name(node.Name).SetHeader("Content-Type", string(types.MergePatchType)).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Param("fieldManager", "suffrage").Body(patch).Do(ctx).Error()
	if err != nil {
		return n.api.Failed("write Node "+node.Name, err, "")
	}
	return nil
}
