package kube

import (
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"suffrage/membership"
)

// The conditions that are read. EtcdIsVoter is K3s's, of a host whose K3s runs etcd.
const (
	ready       = "Ready"
	etcdIsVoter = "EtcdIsVoter"
)

// whole is a Node with its conditions: of its spec and its state nothing else is kept.
type whole struct {
	meta.PartialObjectMetadata
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	LastTransitionTime meta.Time `json:"lastTransitionTime"`
}

// state is what a Node says of itself. A status in another word than Kubernetes' is
// Unknown, as Kubernetes means by it: nobody can tell.
func (w whole) state() (n membership.Node) {
	for _, c := range w.Status.Conditions {
		said := &membership.Condition{Status: c.Status, Reason: cut(printable(c.Reason), maxWord), Since: c.LastTransitionTime.UTC()}
		switch c.Status {
		case "True", "False":
		default:
			said.Status = "Unknown"
		}
		switch c.Type {
		case ready:
			n.Ready = said
		case etcdIsVoter:
			n.EtcdIsVoter = said
		}
	}
	return n
}

// maxWord bounds the reason of a condition, in bytes: it is one word.
const maxWord = 100
