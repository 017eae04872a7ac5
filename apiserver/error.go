package apiserver

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Error is a call that failed.
type Error struct {
	Server    string // its address
	Operation string // such as: read Lease suffrage/fleet-regrade
	Err       error
	// Help is what would help, where that is known.
	Help string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s at %s: %v", e.Operation, e.Server, e.Err)
	if e.Help != "" {
		text += ": " + e.Help
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Failed says what was done when err came. help is used where the error itself
// does not say what would.
func (c *Client) Failed(operation string, err error, help string) error {
	switch {
	case apierrors.IsForbidden(err):
		// The message of the server names user, verb, resource and namespace.
		help = "deploy/kubernetes/rbac.yaml has the rules that are needed"
	case apierrors.IsUnauthorized(err):
		help = "the token or certificate of the kubeconfig is not one of this cluster, or ran out"
	case errors.Is(err, context.DeadlineExceeded):
		help = "it did not answer in time: look whether it runs, and reaches its etcd"
	}
	return &Error{Server: c.host, Operation: operation, Err: err, Help: help}
}
