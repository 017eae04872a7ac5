package kubernetes

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"suffrage/lease"
)

// Error is a call to the API server that failed.
type Error struct {
	Server    string // its address
	Operation string // read or write
	Namespace string
	Help      string // what would help, where that is known
	Err       error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("lease: %s Lease %s/%s at %s: %v", e.Operation, e.Namespace, lease.Name, e.Server, e.Err)
	if e.Help != "" {
		text += ": " + e.Help
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

func (s *Store) failed(op string, err error) error {
	return &Error{Server: s.host, Operation: op, Namespace: s.namespace, Help: s.help(err), Err: err}
}

func (s *Store) help(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		// The message of the server names user, verb, resource and namespace.
		return "deploy/kubernetes/rbac.yaml has the rules that are needed"
	case apierrors.IsUnauthorized(err):
		return "the token or certificate of the kubeconfig is not one of this cluster, or ran out"
	case apierrors.IsNotFound(err):
		return "create it with 'kubectl create namespace " + s.namespace + "'"
	case apierrors.IsInvalid(err):
		return "all annotations of an object may have 256 KiB together, of which the record takes up to 95: remove what others put there"
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time: look whether it runs, and reaches its etcd"
	}
	return ""
}
