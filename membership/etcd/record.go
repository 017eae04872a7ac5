package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const recordKey = "/suffrage/membership"

// Record is the membership as Suffrage last knew it. It outlives controllers,
// so that a new one knows whether the voters just changed.
type Record struct {
	ClusterID string `json:"cluster_id"`
	// Members are the IDs of the voters, sorted.
	Members []string `json:"members"`
	// Since is since when these are the voters, as far as anybody saw it.
	Since time.Time `json:"since"`
	// Changed is the last change that was seen; zero when none was.
	Changed time.Time `json:"changed,omitzero"`
}

// Next is the record after the voters of a cluster were seen at now. A cluster
// with another ID leaves the record as it is: a restore made a new cluster, and
// only the owner may say that it is the one meant. etcd keeps the record with
// the old ID in the restored data, which is what shows it.
//
// A time that is still to come was written by a host whose clock is ahead. Until
// then no sample would count and no cooldown would end, so it becomes now: that is
// later than what it stands for, and costs a window, not an hour.
func Next(r Record, clusterID string, voters []string, now time.Time) (next Record, changed bool) {
	voters = slices.Sorted(slices.Values(voters))
	switch {
	case clusterID == "" || len(voters) == 0:
		return r, false
	case r.ClusterID == "":
		return Record{ClusterID: clusterID, Members: voters, Since: now}, true
	case r.ClusterID != clusterID:
		return r, false
	case slices.Equal(r.Members, voters):
		early := r.Since.After(now) || r.Changed.After(now)
		r.Since, r.Changed = earlier(r.Since, now), earlier(r.Changed, now)
		return r, early
	}
	return Record{ClusterID: clusterID, Members: voters, Since: now, Changed: now}, true
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// LoadRecord gives the zero Record where none was saved yet.
func LoadRecord(ctx context.Context, kv clientv3.KV) (Record, error) {
	g, err := kv.Get(ctx, recordKey)
	if err != nil {
		return Record{}, fmt.Errorf("etcd: read %s: %w", recordKey, err)
	}
	var r Record
	if len(g.Kvs) == 0 {
		return r, nil
	}
	if err := strict(g.Kvs[0].Value, &r); err != nil {
		return Record{}, fmt.Errorf("etcd: read %s: %w: if no other version of suffrage needs it, delete the key", recordKey, err)
	}
	return r, nil
}

// SaveRecord writes the record only while l still leads: whoever was deposed,
// even if it was frozen and does not know yet, gets ErrLost and writes nothing.
func SaveRecord(ctx context.Context, kv clientv3.KV, l Leadership, r Record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("etcd: write %s: %w", recordKey, err)
	}
	t, err := kv.Txn(ctx).If(l.Held()).Then(clientv3.OpPut(recordKey, string(value))).Commit()
	if err != nil {
		return fmt.Errorf("etcd: write %s: %w", recordKey, err)
	}
	if !t.Succeeded {
		return fmt.Errorf("etcd: write %s: %w", recordKey, ErrLost)
	}
	return nil
}
