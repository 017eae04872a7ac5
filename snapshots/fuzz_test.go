package snapshots

import (
	"errors"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"
)

// What is read is what is written, and nothing else is read.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{
		"20260806T120000Z_h3_48213.db", "20260806T120000Z_h-3_1.db", "00010101T000000Z_a_9223372036854775807.db",
		"20260806T120000Z_h3_0.db", "20260806T120000Z_h3_048.db", "20260806T120000Z_h3_+8.db", "20260806T250000Z_h3_1.db",
		"20260806T120000Z_H3_1.db", "20260806T120000Z__1.db", "20260806T120000Z_h3_1.partial", "snapshot.db", ".db", "20260806T120000.5Z_h3_1.db",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			if !errors.Is(err, ErrName) {
				t.Errorf("%q: %v is no ErrName", s, err)
			}
			return
		}
		if n.String() != s || filepath.Base(s) != s {
			t.Errorf("%q was read as %+v, which is written %q", s, n, n)
		}
	})
}

// A key bucket with any entry is read or refused; it never ends the process.
// The pages are bbolt's own: what it does with damaged ones is its business.
func FuzzContent(f *testing.F) {
	key := func(rev int64, tombstone bool) []byte {
		k := mvcc.RevToBytes(mvcc.Revision{Main: rev}, mvcc.NewRevBytes())
		if tombstone {
			k = append(k, 't')
		}
		return k
	}
	value, err := proto.Marshal(&mvccpb.KeyValue{Key: []byte("a"), Value: []byte("b"), CreateRevision: 2, ModRevision: 2, Version: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key(2, false), value, key(1, false))
	f.Add(key(3, true), value, key(3, false))
	f.Add(key(2, false), []byte{}, []byte{})
	f.Add([]byte("short"), value, []byte("short"))
	f.Add(append(key(2, false)[:8], '-', 0, 0, 0, 0, 0, 0, 0, 0), value, key(9, false))
	f.Add(key(-1, false), []byte{0xff}, key(-1, false))
	db, err := bolt.Open(filepath.Join(f.TempDir(), "db"), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { db.Close() })
	f.Fuzz(func(t *testing.T, k, v, compact []byte) {
		if len(k) == 0 || len(k) > bolt.MaxKeySize {
			return
		}
		// Not committed: the disk is not what is tested.
		tx, err := db.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		meta, err := tx.CreateBucket(schema.Meta.Name())
		if err != nil {
			t.Fatal(err)
		}
		keys, err := tx.CreateBucket(schema.Key.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(meta.Put(schema.FinishedCompactKeyName, compact), keys.Put(k, v)); err != nil {
			t.Fatal(err)
		}
		var c Content
		err = guarded(func() (err error) {
			c, err = readContent(t.Context(), tx)
			return err
		})
		if err == nil && (c.Revision < 1 || c.Keys < 0 || c.Keys > 1) {
			t.Errorf("read as %+v", c)
		}
	})
}
