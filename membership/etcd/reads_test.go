package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// turns answers every read after the next of its waits, as members do that are
// asked by turns.
type turns struct {
	clientv3.KV
	waits []time.Duration
	asked int
	err   error
}

func (k *turns) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	wait := k.waits[k.asked%len(k.waits)]
	k.asked++
	select {
	case <-time.After(wait):
		return &clientv3.GetResponse{}, k.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestReadsGoOnToTheNextMember(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		why   string
		waits []time.Duration
		err   error
		took  time.Duration
		asked int
		want  error
	}{
		{"the first one answers", []time.Duration{time.Millisecond}, nil, time.Millisecond, 1, nil},
		{"one without a leader is left for the next", []time.Duration{never, time.Millisecond}, nil, time.Second + time.Millisecond, 2, nil},
		{"so are two", []time.Duration{never, never, time.Millisecond}, nil, 3*time.Second + time.Millisecond, 3, nil},
		{"all are slow, and answer where one waits", []time.Duration{1500 * time.Millisecond}, nil, 2500 * time.Millisecond, 2, nil},
		{"nobody answers, until the caller gives up", []time.Duration{never}, nil, 15 * time.Second, 4, context.DeadlineExceeded},
		{"an error is an answer", []time.Duration{time.Millisecond}, errors.ErrUnsupported, time.Millisecond, 1, errors.ErrUnsupported},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := &turns{waits: c.waits, err: c.err}
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			began := time.Now()
			_, err := reads{k, time.Second}.Get(ctx, "k")
			if took := time.Since(began); !errors.Is(err, c.want) || took != c.took || k.asked != c.asked {
				t.Errorf("%s: %v after %v, asked %d times; want %v after %v, %d times", c.why, err, took, k.asked, c.want, c.took, c.asked)
			}
		})
	}
}
