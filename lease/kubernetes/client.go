package kubernetes

import (
	"fmt"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"suffrage/apiserver"
	"suffrage/lease"
)

// New uses the API server that cfg names. It connects when first used; Close it
// when done.
func New(cfg *rest.Config, namespace string) (*Store, error) {
	if err := (apiserver.Config{Namespace: namespace}).Validate(); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	c, err := apiserver.New(cfg, coordination.SchemeGroupVersion, scheme)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return &Store{api: c, namespace: namespace}, nil
}

// Close closes the connections.
func (s *Store) Close() { s.api.Close() }

// failed says what was done, and what would help.
func (s *Store) failed(op string, err error) error {
	help := ""
	switch {
	case apierrors.IsNotFound(err):
		help = "create it with 'kubectl create namespace " + s.namespace + "'"
	case apierrors.IsInvalid(err):
		help = "all annotations of an object may have 256 KiB together, of which the record takes up to 95: remove what others put there"
	}
	return s.api.Failed(fmt.Sprintf("lease: %s Lease %s/%s", op, s.namespace, lease.Name), err, help)
}
