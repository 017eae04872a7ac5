package main

import (
	"context"
	"errors"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errLost: as in K3s, a server that loses the Lease ends.
var errLost = errors.New("leaderelection lost for k3s-etcd")

// elector is leader election by a Lease, as client-go does it: a holder that
// could not renew for two thirds of the duration has lost it, and others take it
// when they saw it unchanged for the whole.
type elector struct {
	api      *apiClient
	identity string
	duration time.Duration

	seen  string // resourceVersion
	since time.Time
}

// run calls lead while it leads; it gives the Lease back when ctx ends.
func (e *elector) run(ctx context.Context, lead func(context.Context) error) error {
	retry := min(2*time.Second, e.duration/10)
	for !e.attempt(ctx) {
		if !pause(ctx, retry) {
			return nil
		}
	}
	leading, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- lead(leading) }()
	for renewed := time.Now(); ; {
		if !pause(ctx, retry) {
			stop()
			return errors.Join(<-ended, e.release())
		}
		if e.attempt(ctx) {
			renewed = time.Now()
		}
		if time.Since(renewed) > e.duration*2/3 && ctx.Err() == nil {
			return errLost
		}
	}
}

// attempt takes or renews the Lease and gives whether it has it.
func (e *elector) attempt(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, e.duration/3)
	defer cancel()
	l, err := e.api.lease(ctx)
	if apierrors.IsNotFound(err) {
		l, err = &coordination.Lease{}, nil
	}
	if err != nil {
		return false
	}
	if l.ResourceVersion != e.seen {
		e.seen, e.since = l.ResourceVersion, time.Now()
	}
	mine := l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == e.identity
	free := l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == ""
	if !mine && !free && time.Since(e.since) < e.duration {
		return false
	}
	now, seconds := meta.NowMicro(), int32(max(1, e.duration/time.Second))
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &e.identity, &seconds, &now
	if !mine {
		l.Spec.AcquireTime = &now
	}
	return e.api.setLease(ctx, l) == nil
}

func (e *elector) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	l, err := e.api.lease(ctx)
	if err != nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != e.identity {
		return err
	}
	none := ""
	l.Spec.HolderIdentity = &none
	return e.api.setLease(ctx, l)
}

// pause gives false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
