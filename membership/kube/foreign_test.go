package kube

import (
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSigns(t *testing.T) {
	type text map[string]string
	for _, c := range []struct {
		why                 string
		annotations, labels text
		who                 string
	}{
		{"nothing", nil, text{"node-role.kubernetes.io/etcd": "true"}, ""},
		{"a control plane of Cluster API's", text{"cluster.x-k8s.io/owner-kind": "KubeadmControlPlane"}, nil, "Cluster API"},
		{"its workers have no members", text{"cluster.x-k8s.io/owner-kind": "MachineSet"}, nil, ""},
		{"Rancher's machine with etcd", nil, text{"rke.cattle.io/machine": "a", "node-role.kubernetes.io/etcd": "true"}, "Rancher"},
		{"Rancher's worker", nil, text{"rke.cattle.io/machine": "a"}, ""},
	} {
		var n meta.PartialObjectMetadata
		n.Name, n.Annotations, n.Labels = "h1", c.annotations, c.labels
		who := ""
		for _, f := range signs(n) {
			who += f.Who
			if f.Host != "h1" || f.Sign == "" {
				t.Errorf("%s: %+v", c.why, f)
			}
		}
		if who != c.who {
			t.Errorf("%s: seen %q, want %q", c.why, who, c.who)
		}
	}
}
