package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// patientReads bounds how often a read is begun again before it may take as long
// as its caller waits.
const patientReads = 3

// reads is a KV whose reads do not stay with a member that keeps them waiting. The
// client asks its endpoints by turns, and one that is alive and has no leader (it
// is cut off from the others, and not from us) keeps a read for etcd's own 5 s +
// 2·E: a third of all reads, of three voters. So a read that takes longer than try
// is begun again, which asks the next one; each time with twice the patience, so
// that a fleet that is slow as a whole still answers. A read may be repeated, a
// write never: those go as they are.
type reads struct {
	clientv3.KV
	try time.Duration
}

func (r reads) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	patience := r.try
	for range patientReads {
		try, cancel := context.WithTimeout(ctx, patience)
		got, err := r.KV.Get(try, key, opts...)
		gaveUp := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !gaveUp {
			return got, err
		}
		patience *= 2
	}
	return r.KV.Get(ctx, key, opts...)
}
