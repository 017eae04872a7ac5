package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

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

// Away reports whether an error of a call is that nobody answered it, or a server that
// cannot serve now. One that says no is there, and says the same to everybody.
func Away(err error) bool {
	e := (*Error)(nil)
	if !errors.As(err, &e) || errors.Is(e.Err, context.Canceled) {
		return false
	}
	if said := apierrors.APIStatus(nil); errors.As(e.Err, &said) {
		return said.Status().Code >= http.StatusInternalServerError
	}
	lost := (*url.Error)(nil)
	return errors.As(e.Err, &lost) || errors.Is(e.Err, context.DeadlineExceeded)
}

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
