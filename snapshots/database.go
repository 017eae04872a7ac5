package snapshots

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"
)

// Content is what is in the database.
type Content struct {
	// Revision is the one that etcd has when it starts from this, at least 1.
	Revision int64 `json:"revision"`
	// CompactRevision is the one up to which history is gone; 0 when none is.
	CompactRevision int64 `json:"compact_revision"`
	// Keys is how many keys exist at Revision, as a count of all keys gives.
	Keys int64 `json:"keys"`
	// HashKV is etcd's own hash over the history, the one that
	// `etcdctl endpoint hashkv --rev REVISION` prints for a running member with
	// the same compact revision.
	HashKV uint32 `json:"hash_kv"`
	// StorageVersion is the schema's, "3.6.0"; etcd 3.5 does not tell.
	StorageVersion string `json:"storage_version,omitempty"`
	// newest is the newest entry's revision; compaction may have left it behind
	// Revision, and etcdutl counts from it.
	newest int64
}

// every is how many keys are read between two looks at the context.
const every = 4096

// readDatabase opens a database without writing to it, reads every key and
// checks every page.
func readDatabase(ctx context.Context, path string) (c Content, err error) {
	err = guarded(func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
		if err != nil {
			return fmt.Errorf("it does not open as a database: %w", err)
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			// In this order: bbolt checks in a goroutine of its own, where a page that
			// makes no sense ends the process (bbolt 1.5.0, DB.freepages). Reading
			// everything first meets such a page here, where it can be caught.
			if err := readAll(ctx, tx); err != nil {
				return err
			}
			if c, err = readContent(ctx, tx); err != nil {
				return err
			}
			return checkPages(tx)
		})
	})
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return c, fmt.Errorf("snapshots: verify: read %s: %w", path, context.Cause(ctx))
	}
	return c, bad(path, "%v", err)
}

// guarded turns into errors what bbolt and mvcc panic about, and the faults of a
// mapped file that got shorter or whose disk cannot read it.
func guarded(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its database cannot be read: %v", r)
		}
	}()
	return read()
}

// readAll visits every page that holds anything.
func readAll(ctx context.Context, tx *bolt.Tx) error {
	return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		n := 0
		return b.ForEach(func(_, _ []byte) error {
			if n++; n%every == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		})
	})
}

// checkPages looks at every page of the file; the channel must be drained.
func checkPages(tx *bolt.Tx) error {
	n, first := 0, error(nil)
	for e := range tx.Check() {
		if n++; first == nil {
			first = e
		}
	}
	if n > 0 {
		return fmt.Errorf("its database is inconsistent in %d places, the first: %w", n, first)
	}
	return nil
}

func readContent(ctx context.Context, tx *bolt.Tx) (Content, error) {
	var c Content
	if v := schema.ReadStorageVersionFromSnapshot(tx); v != nil {
		c.StorageVersion = v.String()
	}
	meta, keys := tx.Bucket(schema.Meta.Name()), tx.Bucket(schema.Key.Name())
	if meta == nil || keys == nil {
		return c, errors.New("it is a database, but not etcd's: the buckets meta and key are missing")
	}
	for _, name := range [][]byte{schema.FinishedCompactKeyName, schema.ScheduledCompactKeyName} {
		if v := meta.Get(name); v != nil {
			c.CompactRevision = max(c.CompactRevision, mvcc.BytesToRev(v).Main)
		}
	}
	live, newest, err := liveKeys(ctx, keys)
	if err != nil {
		return c, err
	}
	// As etcd starts (mvcc.store.restore): compaction may have taken the newest
	// entries, so the key bucket alone can be behind.
	c.Revision, c.newest = max(1, newest, c.CompactRevision), newest
	c.Keys = int64(len(live))
	if _, ok := live[""]; ok {
		c.Keys-- // the mark of a raised revision; no client can see or make it
	}
	c.HashKV, err = hashKV(ctx, keys, c.CompactRevision, live)
	return c, err
}

// liveKeys gives each key that exists at the end of history with the revision
// that holds its value.
func liveKeys(ctx context.Context, keys *bolt.Bucket) (live map[string]mvcc.Revision, newest int64, err error) {
	live = map[string]mvcc.Revision{}
	n := 0
	err = keys.ForEach(func(k, v []byte) error {
		if n++; n%every == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rev := mvcc.BytesToRev(k)
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(v, &kv); err != nil {
			return fmt.Errorf("the entry at revision %d.%d is no key and value: %w", rev.Main, rev.Sub, err)
		}
		newest = rev.Main
		if mvcc.IsTombstone(k) {
			delete(live, string(kv.Key))
		} else {
			live[string(kv.Key)] = rev
		}
		return nil
	})
	return live, newest, err
}

// hashKV is etcd's hash of the key bucket at its newest revision, written a
// second time since etcd has it on an open store only (mvcc/hash.go, kvHasher).
// History up to the compact revision counts only where it is the value of a
// live key: when the rest is really removed is chance.
func hashKV(ctx context.Context, keys *bolt.Bucket, compact int64, live map[string]mvcc.Revision) (uint32, error) {
	keep := make(map[mvcc.Revision]bool, len(live))
	for _, rev := range live {
		keep[rev] = true
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	h.Write(schema.Key.Name())
	n := 0
	err := keys.ForEach(func(k, v []byte) error {
		if n++; n%every == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rev := mvcc.BytesToRev(k)
		if rev.Main <= compact && len(keep) > 0 && !keep[rev] {
			return nil
		}
		if rev.Main == compact && mvcc.IsTombstone(k) {
			return nil // some versions of etcd keep it, some do not
		}
		h.Write(k)
		h.Write(v)
		return nil
	})
	return h.Sum32(), err
}
