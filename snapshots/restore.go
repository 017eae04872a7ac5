package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// DefaultBump is how far a restore raises the revision: what etcd's documentation
// advises for Kubernetes, above what any cluster wrote since its last snapshot
// (100 writes a second for 115 days).
const DefaultBump = 1_000_000_000

// maxBump leaves room for all that is written later.
const maxBump = 1 << 60

// walRoom is what etcd's log takes at first: a segment of 64 MB and a spare one.
const walRoom = 2 * 64 << 20

// RestoreOptions say which member a snapshot becomes.
type RestoreOptions struct {
	// Dir is the new data directory. Whatever exists there is refused.
	Dir string
	// Name is the member's, which is its host's.
	Name string
	// Cluster are the names and peer URLs of all members of the new cluster,
	// Name among them. Each of them is restored from the same file with the same
	// Cluster, Token and Bump; usually there is one, and the others join it.
	Cluster map[string]string
	// Token is mixed into the IDs of members and cluster. Empty: made from the
	// snapshot's hash, so that members restored from one file agree, and differ
	// from the cluster that the snapshot was taken of: with equal IDs, old
	// members that still run would be taken for new ones.
	Token string
	// Bump is added to the revision, 1 to 2^60, DefaultBump where it is 0.
	// Without it clients that kept a cache see revisions again that they know
	// with another content, and go wrong without noticing.
	Bump int64
}

// Restored is what was made.
type Restored struct {
	Dir string `json:"dir"`
	// Member is the name; Cluster are names and peer URLs.
	Member  string            `json:"member"`
	Cluster map[string]string `json:"cluster"`
	Token   string            `json:"token"`
	// From is what was in the snapshot.
	From Facts `json:"from"`
	// Revision is From.Revision and the bump; all before it counts as compacted.
	Revision int64 `json:"revision"`
}

// Restore verifies a snapshot and makes a new data directory of it, with the
// revision raised. The directory gets its name when it is complete: an
// interrupted restore leaves DIR.partial, which the next one refuses to touch.
// It cannot be cancelled between verifying and the end.
func Restore(ctx context.Context, path string, o RestoreOptions) (Restored, error) {
	if o.Bump == 0 {
		o.Bump = DefaultBump
	}
	if err := o.check(); err != nil {
		return Restored{}, fmt.Errorf("snapshots: restore: %w", err)
	}
	facts, err := Verify(ctx, path)
	if err != nil {
		return Restored{}, err
	}
	if o.Token == "" {
		o.Token = "suffrage-" + facts.SHA256[:16]
	}
	out := Restored{Dir: o.Dir, Member: o.Name, Cluster: o.Cluster, Token: o.Token, From: facts, Revision: facts.Revision + o.Bump}
	if err := o.restore(ctx, path, out); err != nil {
		return Restored{}, fmt.Errorf("snapshots: restore %s to %s: %w", path, o.Dir, err)
	}
	return out, nil
}

func (o RestoreOptions) check() error {
	switch {
	case !filepath.IsAbs(o.Dir):
		return fmt.Errorf("directory %q: an absolute path is needed", o.Dir)
	case o.Name == "" || o.Cluster[o.Name] == "":
		return fmt.Errorf("member %q has no peer URL among %v", o.Name, slices.Sorted(maps.Keys(o.Cluster)))
	case o.Bump < 1 || o.Bump > maxBump:
		return fmt.Errorf("bump %d: 1 to %d", o.Bump, int64(maxBump))
	}
	for name, url := range o.Cluster {
		if strings.ContainsAny(name+url, ",= \t\n") {
			return fmt.Errorf("member %q with peer URL %q: neither may hold a comma, = or space", name, url)
		}
	}
	for _, d := range []string{o.Dir, o.Dir + partial} {
		_, err := os.Lstat(d)
		if err == nil && d == o.Dir {
			return fmt.Errorf("%w: %s: a restore makes a new directory; move this one aside and keep it: mv %s %s.before-restore", fs.ErrExist, d, d, d)
		}
		if err == nil {
			return fmt.Errorf("%w: %s is left of a restore that was interrupted, or one is running; if none runs: rm -r %s", fs.ErrExist, d, d)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (o RestoreOptions) restore(ctx context.Context, path string, out Restored) error {
	parent, temp := filepath.Dir(o.Dir), o.Dir+partial
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := needFree(parent, out.From.Size+walRoom, "the restored datastore"); err != nil {
		return err
	}
	// Made here and not by etcdutl: two restores at once must not share it.
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	o.Bump += out.From.Revision - out.From.newest
	err := o.build(path, temp, zap.NewNop())
	if err == nil {
		err = checkRestored(ctx, filepath.Join(temp, "member", "snap", "db"), out.Revision)
	}
	if err == nil {
		err = syncTree(temp)
	}
	if err == nil {
		err = place(temp, o.Dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return nil
}

// build is etcdutl's restore. It ends by panicking in several places.
func (o RestoreOptions) build(path, dir string, log *zap.Logger) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("etcdutl: %v", r)
		}
	}()
	var members []string
	for _, name := range slices.Sorted(maps.Keys(o.Cluster)) {
		members = append(members, name+"="+o.Cluster[name])
	}
	return snapshot.NewV3(log).Restore(snapshot.RestoreConfig{
		SnapshotPath:        path,
		Name:                o.Name,
		OutputDataDir:       dir,
		PeerURLs:            []string{o.Cluster[o.Name]},
		InitialCluster:      strings.Join(members, ","),
		InitialClusterToken: o.Token,
		RevisionBump:        uint64(o.Bump),
		MarkCompacted:       o.Bump > 0,
	})
}

// checkRestored looks at what was made, since etcdutl does not: whether its bump
// had any effect cannot be told from its result.
func checkRestored(ctx context.Context, db string, want int64) error {
	c, err := readDatabase(ctx, db)
	if err != nil {
		return err
	}
	if c.Revision != want || c.CompactRevision != want {
		return fmt.Errorf("the new database has revision %d, compacted up to %d; both should be %d", c.Revision, c.CompactRevision, want)
	}
	return nil
}

// syncTree syncs a directory and all below it. etcd synced the files' contents,
// not all of their names.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path) // a file is synced the same way
	})
}

// Room refuses where a new datastore of a database of this size has no room on
// the filesystem of a directory, which need not exist yet.
func Room(dir string, size int64) error {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return needFree(dir, size+walRoom, "the new datastore")
		}
		dir = filepath.Dir(dir)
	}
}
