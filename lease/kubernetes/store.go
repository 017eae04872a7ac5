// Package kubernetes keeps the Lease in a coordination.k8s.io Lease named
// fleet-regrade, in a namespace of the owner's choice.
//
// The record is one annotation, in the JSON form that etcd's key has, so that
// the journal cannot go without it. The fields of the spec say the same to those
// who look with kubectl, and nothing is read from them: who clears
// holderIdentity by hand ends the holder's Lease, as with any other write, and
// the next one still waits for the whole duration.
//
// The version is resourceVersion, which with etcd behind the API server is the
// mod revision of the Lease's key there, and the Floor is the resourceVersion of
// the list that the Lease was read with: etcd's revision.
package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"suffrage/apiserver"
	"suffrage/lease"
)

// Annotation is where the record is.
const Annotation = "suffrage.io/lease"

// Store is the record in the Lease of one namespace.
type Store struct {
	api       *apiserver.Client
	namespace string
}

// EtcdKey is where the API server keeps the Lease in its etcd. The mod revision
// of that key is the Lease's Version, so a transaction in etcd can be made to
// depend on the Lease. Kubernetes does not promise the layout, and has not changed
// it since there are Leases; with another --etcd-prefix than /registry, which is
// kube-apiserver's default and K3s's, there is nothing at the key.
func (s *Store) EtcdKey() string { return "/registry/leases/" + s.namespace + "/" + lease.Name }

// Get reads from the store behind the API server, not from its cache: a list
// that names no version is that, as of the revision that it carries.
func (s *Store) Get(ctx context.Context) (lease.Seen, error) {
	var list coordination.LeaseList
	err := s.api.Verb("GET").Namespace(s.namespace).Resource("leases").
		Param("fieldSelector", "metadata.name="+lease.Name).Do(ctx).Into(&list)
	if err != nil {
		return lease.Seen{}, s.failed("read", err)
	}
	floor, err := strconv.ParseUint(list.ResourceVersion, 10, 63)
	if err != nil {
		return lease.Seen{}, s.failed("read", fmt.Errorf("the list's resourceVersion is %.50q, not a number that Terms could grow with", list.ResourceVersion))
	}
	// A Term is at most one more than the Floor read before it was written, and
	// its write raised the revision.
	seen := lease.Seen{Floor: lease.Term(floor)}
	if len(list.Items) == 0 {
		return seen, nil
	}
	l := list.Items[0]
	if l.Name != lease.Name || l.ResourceVersion == "" {
		return lease.Seen{}, s.failed("read", fmt.Errorf("the API server answered with Lease %.50q, version %.50q", l.Name, l.ResourceVersion))
	}
	seen.Version = lease.Version(l.ResourceVersion)
	if seen.Record, err = decode(l.Annotations); err != nil {
		return lease.Seen{}, fmt.Errorf("%w: Lease %s/%s: annotation %s: %w: look with 'kubectl -n %[2]s get lease %[3]s -o yaml'; deleting the Lease also deletes the journal of an operation under way",
			lease.ErrUnreadable, s.namespace, lease.Name, Annotation, err)
	}
	return seen, nil
}

func decode(annotations map[string]string) (lease.Record, error) {
	text, ok := annotations[Annotation]
	if !ok {
		return lease.Record{}, errors.New("there is none")
	}
	return lease.Decode([]byte(text))
}

// Put creates the Lease, or patches it where its resourceVersion is still old.
// A patch leaves alone what others wrote beside it, such as labels.
func (s *Store) Put(ctx context.Context, r lease.Record, old lease.Version) (lease.Version, error) {
	if err := r.Validate(); err != nil {
		return "", s.failed("write", err)
	}
	body, err := object(r, old, time.Now())
	if err != nil {
		return "", s.failed("write", err)
	}
	var req *rest.Request
	if old == "" {
		req = s.api.Verb("POST").SetHeader("Content-Type", "application/json")
	} else if _, err := strconv.ParseUint(string(old), 10, 64); err != nil {
		return "", s.failed("write", fmt.Errorf("version %.50q is not a resourceVersion", old))
	} else {
		req = s.api.Verb("PATCH").SetHeader("Content-Type", string(types.MergePatchType)).Name(lease.Name)
	}
	var l coordination.Lease
	err = req.Namespace(s.namespace).Resource("leases").Body(body).Do(ctx).Into(&l)
	switch {
	case err == nil && l.ResourceVersion != "":
		return lease.Version(l.ResourceVersion), nil
	case err == nil:
		return "", s.failed("write", errors.Join(lease.ErrUnknown, errors.New("the answer has no resourceVersion")))
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), old != "" && apierrors.IsNotFound(err):
		return "", s.failed("write", lease.ErrConflict)
	case refused(err):
		return "", s.failed("write", err)
	default:
		return "", s.failed("write", errors.Join(lease.ErrUnknown, err))
	}
}

// object is the Lease, or the patch of one, that says r. Null clears a field.
func object(r lease.Record, old lease.Version, now time.Time) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{"annotations": map[string]string{Annotation: string(text)}}
	if old == "" {
		metadata["name"] = lease.Name
	} else {
		metadata["resourceVersion"] = string(old)
	}
	var holder any
	if r.Holder != (lease.Holder{}) {
		holder = r.Holder.Host + "_" + r.Holder.Instance // as client-go's leader election has it
	}
	return json.Marshal(map[string]any{
		"apiVersion": "coordination.k8s.io/v1",
		"kind":       "Lease",
		"metadata":   metadata,
		"spec": map[string]any{
			"holderIdentity":       holder,
			"leaseDurationSeconds": int32((r.Duration.Std() + time.Second - 1) / time.Second),
			"acquireTime":          meta.NewMicroTime(r.Since),
			"renewTime":            meta.NewMicroTime(now),
		},
	})
}

// refused is whether the API server itself said no before it wrote. Any other
// error, such as a timeout of its own, may come after the write was sent to
// etcd, which then may still be done.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsTooManyRequests(err)
}
