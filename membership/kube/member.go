package kube

import "context"

// Member is the name of the member of etcd that K3s has written on a Node, empty
// where there is none: K3s takes it away once the member is removed. The member
// list is what counts; this is for a host that cannot read it, since K3s gives
// etcd's certificates to servers only.
func (n *Nodes) Member(ctx context.Context, host string) (string, error) {
	node, err := n.get(ctx, host)
	if err != nil {
		return "", err
	}
	return node.Annotations[k3sName], nil
}
