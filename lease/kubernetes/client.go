package kubernetes

import (
	"fmt"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// New uses the API server that cfg names. It connects when first used.
//
// It is client-go's REST client with this one API group. The typed clientset
// links every group that Kubernetes has: docs/performance.md has the sizes.
func New(cfg *rest.Config, namespace string) (*Store, error) {
	if why := validation.IsDNS1123Label(namespace); why != nil {
		return nil, fmt.Errorf("lease: namespace %.80q: %s", namespace, why[0])
	}
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	meta.AddToGroupVersion(scheme, meta.SchemeGroupVersion)
	own := rest.CopyConfig(cfg)
	own.APIPath = "/apis"
	own.GroupVersion = &coordination.SchemeGroupVersion
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.QPS = -1 // a renewal must not queue behind anything; there are few calls
	own.WarningHandler = rest.NoWarnings{}
	c, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("lease: client for %s: %w", cfg.Host, err)
	}
	return &Store{c, namespace}, nil
}
