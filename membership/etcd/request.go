package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const requestKey = "/suffrage/request"

// The kinds of Request.
const (
	SwapRequest   = "swap"   // Out loses its vote, In gets one
	GrowRequest   = "grow"   // In gets a vote
	ShrinkRequest = "shrink" // Out loses its vote
)

// Request is one change that the owner asks for. The controller takes it up
// under the same guards as its own; there is one at a time.
type Request struct {
	Kind string    `json:"kind"`
	Out  string    `json:"out,omitempty"` // hosts
	In   string    `json:"in,omitempty"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`

	rev int64
}

// ErrNoRequest means that it is not there any more, or another one is.
var ErrNoRequest = errors.New("etcd: that request is not there any more")

// RequestedError is why a request was not put: there is one already.
type RequestedError struct{ There Request }

func (e *RequestedError) Error() string {
	return "etcd: there is a request already: " + e.There.String()
}

// String is "swap h3 → h4, asked for by anna".
func (r Request) String() string {
	hosts := map[string]string{SwapRequest: r.Out + " → " + r.In, GrowRequest: "by " + r.In, ShrinkRequest: "by " + r.Out}[r.Kind]
	return fmt.Sprintf("%s %s, asked for by %s", r.Kind, hosts, r.By)
}

// Validate says what cannot be.
func (r Request) Validate() error {
	out, in := r.Kind == SwapRequest || r.Kind == ShrinkRequest, r.Kind == SwapRequest || r.Kind == GrowRequest
	for _, s := range []string{r.Out, r.In, r.By} {
		if len(s) > 256 || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("%.40q: at most 256 bytes of printable text", s)
		}
	}
	switch {
	case !out && !in:
		return fmt.Errorf("kind %.40q: allowed are %s, %s and %s", r.Kind, SwapRequest, GrowRequest, ShrinkRequest)
	case out != (r.Out != "") || in != (r.In != ""):
		return fmt.Errorf("out %q and in %q do not fit kind %s", r.Out, r.In, r.Kind)
	case r.Kind == SwapRequest && r.Out == r.In:
		return fmt.Errorf("%s cannot take its own place", r.Out)
	case r.By == "" || r.At.IsZero():
		return errors.New("by and at are needed")
	}
	return nil
}

// LoadRequest gives nil where there is none.
func LoadRequest(ctx context.Context, kv clientv3.KV) (*Request, error) {
	g, err := kv.Get(ctx, requestKey)
	if err != nil {
		return nil, fmt.Errorf("etcd: read %s: %w", requestKey, err)
	}
	if len(g.Kvs) == 0 {
		return nil, nil
	}
	r, err := readRequest(g.Kvs[0].Value)
	if err != nil {
		return nil, fmt.Errorf("etcd: read %s: %w: if no other version of suffrage needs it, delete the key", requestKey, err)
	}
	r.rev = g.Kvs[0].ModRevision
	return &r, nil
}

func readRequest(data []byte) (r Request, err error) {
	if err := strict(data, &r); err != nil {
		return Request{}, err
	}
	if err := r.Validate(); err != nil {
		return Request{}, err
	}
	return r, nil
}

// PutRequest asks for a change, unless one is asked for already: then the error
// is a RequestedError. What is given back can be cleared.
func PutRequest(ctx context.Context, kv clientv3.KV, r Request) (Request, error) {
	if err := r.Validate(); err != nil {
		return Request{}, fmt.Errorf("etcd: request: %w", err)
	}
	value, err := json.Marshal(r)
	if err != nil {
		return Request{}, fmt.Errorf("etcd: write %s: %w", requestKey, err)
	}
	t, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(requestKey), "=", 0)).
		Then(clientv3.OpPut(requestKey, string(value))).Else(clientv3.OpGet(requestKey)).Commit()
	if err != nil {
		return Request{}, fmt.Errorf("etcd: write %s: %w: it may have been written all the same", requestKey, err)
	}
	if t.Succeeded {
		r.rev = t.Header.Revision
		return r, nil
	}
	var there Request
	if kvs := t.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		if there, err = readRequest(kvs[0].Value); err != nil {
			return Request{}, fmt.Errorf("etcd: there is a request at %s already, and it cannot be read: %w", requestKey, err)
		}
	}
	return Request{}, &RequestedError{there}
}

// ClearRequest takes away the very request that was loaded or put, once it was
// taken up or refused. right is the leader's or the Lease holder's; nil is the
// owner, who may always take back what was asked for.
func ClearRequest(ctx context.Context, kv clientv3.KV, right Right, r Request) error {
	return rightly(ctx, kv, right, requestKey, func(value []byte) ([]clientv3.Op, error) {
		there, err := LoadRequest(ctx, kv)
		if err != nil {
			return nil, err
		}
		if there == nil || there.rev != r.rev {
			return nil, ErrNoRequest
		}
		return []clientv3.Op{clientv3.OpDelete(requestKey)}, nil
	})
}
