package member

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Identity says which cluster and which member of it something belongs to: IDs
// as etcdctl prints them.
type Identity struct {
	Cluster string `json:"cluster"`
	Member  string `json:"member"`
}

func identityOf(cluster, member types.ID) Identity {
	return Identity{cluster.String(), member.String()}
}

// IdentityIn computes what a member of a new cluster will be: etcd makes the IDs
// of peer URLs and token alone.
func IdentityIn(cluster map[string]string, name, token string) (Identity, error) {
	urls, err := types.NewURLsMap(initialCluster(cluster))
	if err != nil {
		return Identity{}, fmt.Errorf("member: initial_cluster: %w", err)
	}
	c, err := membership.NewClusterFromURLsMap(zap.NewNop(), token, urls)
	if err != nil {
		return Identity{}, fmt.Errorf("member: initial_cluster: %w", err)
	}
	m := c.MemberByName(name)
	if m == nil {
		return Identity{}, fmt.Errorf("member: initial_cluster does not name %s: it must hold the names and peer URLs of all members", name)
	}
	return identityOf(c.ID(), m.ID), nil
}

// Create makes the datastore of one member of a new and empty cluster in a
// directory that does not exist. Members made with the same cluster and token
// are of one cluster, started in whatever order. It starts nothing.
//
// It is etcd's own restore, of an empty database: so that the one thing that can
// make a cluster is a command that makes a datastore, and a member that finds
// none never makes one.
func Create(dir, name string, cluster map[string]string, token string) (err error) {
	if _, err := IdentityIn(cluster, name, token); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("member: create a datastore: %w", err)
	}
	empty := dir + ".empty"
	// Where etcd would end the process it panics instead.
	log := zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	defer func() {
		if r := recover(); r != nil { // etcd panics where a disk is full
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			err = errors.Join(fmt.Errorf("member: create a datastore in %s: %w", dir, err), os.RemoveAll(dir))
		}
		if gone := os.Remove(empty); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	if err := emptyDatabase(empty, log); err != nil {
		return err
	}
	return snapshot.NewV3(log).Restore(snapshot.RestoreConfig{
		SnapshotPath: empty, SkipHashCheck: true,
		Name: name, OutputDataDir: dir, PeerURLs: []string{cluster[name]},
		InitialCluster: initialCluster(cluster), InitialClusterToken: token,
	})
}

// emptyDatabase makes what etcd has before the first write.
func emptyDatabase(path string, log *zap.Logger) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	be := backend.NewDefaultBackend(log, path)
	tx := be.BatchTx()
	tx.LockOutsideApply()
	for _, b := range []backend.Bucket{schema.Key, schema.Meta, schema.Members, schema.MembersRemoved, schema.Cluster} {
		tx.UnsafeCreateBucket(b)
	}
	tx.Unlock()
	return be.Close()
}

// IdentityOf reads of which cluster and member the datastore in a data directory
// is: from the first record of its write-ahead log, where etcd keeps it.
func IdentityOf(dataDir string) (Identity, error) {
	fail := func(err error) (Identity, error) {
		return Identity{}, fmt.Errorf("member: identity of the datastore in %s: %w", dataDir, err)
	}
	names, err := filepath.Glob(filepath.Join(dataDir, "member", "wal", "*.wal"))
	if err != nil || len(names) == 0 {
		return fail(errors.Join(err, errors.New("it has no write-ahead log")))
	}
	f, err := os.Open(slices.Min(names))
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	d := wal.NewDecoder(fileutil.NewFileReader(f))
	for range 3 { // a checksum comes before it
		var r walpb.Record
		if err := d.Decode(&r); err != nil {
			return fail(err)
		}
		switch r.GetType() {
		case wal.CrcType:
			d.UpdateCRC(r.GetCrc())
		case wal.MetadataType:
			var m pb.Metadata
			if err := proto.Unmarshal(r.Data, &m); err != nil {
				return fail(err)
			}
			return identityOf(types.ID(m.GetClusterID()), types.ID(m.GetNodeID())), nil
		}
	}
	return fail(errors.New("its write-ahead log does not begin with it"))
}
