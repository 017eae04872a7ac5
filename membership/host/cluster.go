package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const clusterFile = "cluster.json"

// How a cluster was made.
const (
	ByCreate = "create"
	ByReset  = "reset"
)

// Cluster is the record that a cluster was made on this host. It is on the disk
// before there is a datastore, and it stays: a host that has one makes no other
// cluster by `create`, whatever became of its datastore.
type Cluster struct {
	ID     string `json:"id"`
	Member string `json:"member"`
	// Token is mixed into the IDs; it is no secret.
	Token string `json:"token"`
	// Members are the names and peer URLs of the first members.
	Members map[string]string `json:"members"`
	By      string            `json:"by"`
	At      time.Time         `json:"at"`
	// Made: the datastore is complete. Until then no member starts here.
	Made bool `json:"made"`
	// Replaces are the IDs of clusters that a reset put this one in place of: no
	// member of these starts any more where this host can be asked.
	Replaces []string `json:"replaces,omitempty"`
	// From is the snapshot that a reset began with.
	From string `json:"from,omitempty"`
}

// ErrUnfinished is a start while a cluster is being made, or was when the
// command died.
var ErrUnfinished = errors.New("host: a cluster was begun to be made here and is not complete")

// ClusterRecord reads the record, nil where there is none.
func ClusterRecord(data string) (*Cluster, error) {
	var c Cluster
	there, err := files{path: data}.read(clusterFile, &c)
	if err != nil || !there {
		return nil, err
	}
	return &c, nil
}

// finished gives ErrUnfinished while the record says so.
func (d files) finished() error {
	c, err := ClusterRecord(d.path)
	if err != nil || c == nil || c.Made {
		return err
	}
	return fmt.Errorf("%w (cluster %s, by cluster %s at %s): give that command again, it goes on", ErrUnfinished, c.ID, c.By, c.At.UTC().Format(time.RFC3339))
}

// Founding makes a cluster's member on this host. While it is open nothing
// starts a member here, and no order fences.
type Founding struct {
	files     files
	datastore string
	unlock    func()
}

// Found opens a founding. Close it.
func Found(ctx context.Context, data, datastore string) (*Founding, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("host: make the data directory: %w", err)
	}
	f := &Founding{files: files{path: data}, datastore: datastore}
	var err error
	f.unlock, err = f.files.lock(ctx)
	return f, err
}

// Close lets members start again.
func (f *Founding) Close() { f.unlock() }

// Make writes the record, has build make the datastore, and puts it in place.
// Given again after a crash, with the same record, it ends where it would have
// ended; what an earlier run left half built is removed first.
//
// build gets a directory that does not exist, and leaves member/ in it.
func (f *Founding) Make(c Cluster, build func(dir string) error) error {
	c.Made = false
	if err := f.files.write(clusterFile, c); err != nil {
		return err
	}
	has, err := hasDatastore(f.datastore)
	if err != nil {
		return err
	}
	if err := f.clear(); err != nil {
		return err
	}
	if !has {
		if err := f.place(build); err != nil {
			return err
		}
	}
	if err := f.files.remove(joinFile); err != nil {
		return err
	}
	if err := f.files.write(roleFile, role{Voter, c.Member, "cluster-" + c.By, c.At}); err != nil {
		return err
	}
	c.Made = true
	return f.files.write(clusterFile, c)
}

// half is where the datastore is built.
func (f *Founding) half() string { return filepath.Join(f.datastore, "founding") }

// clear removes what a run that died left half built: the record, which came
// first, says that it was one of ours.
func (f *Founding) clear() error {
	f.files.at("clear", "datastore")
	for _, beside := range []string{"", ".partial", ".empty"} { // of snapshots and member
		if err := os.RemoveAll(f.half() + beside); err != nil {
			return fmt.Errorf("host: remove what an interrupted run left: %w", err)
		}
	}
	return nil
}

// place has the datastore built beside its place: in the same directory, which
// may be a mount point.
func (f *Founding) place(build func(dir string) error) error {
	if err := os.MkdirAll(f.datastore, 0o700); err != nil {
		return fmt.Errorf("host: make the datastore's directory: %w", err)
	}
	half := f.half()
	f.files.at("build", "datastore")
	if err := build(half); err != nil {
		return err
	}
	f.files.at("sync", "datastore")
	if err := syncTree(half); err != nil {
		return err
	}
	f.files.at("place", "datastore")
	if err := rename(filepath.Join(half, "member"), filepath.Join(f.datastore, "member")); err != nil {
		return fmt.Errorf("host: put the datastore in place: %w", err)
	}
	f.files.at("sync", "datastore")
	if err := errors.Join(os.RemoveAll(half), syncDirs(f.datastore, filepath.Dir(f.datastore))); err != nil {
		return fmt.Errorf("host: put the datastore in place: %w", err)
	}
	return nil
}

// Aside renames the datastore and gives its new name. It is kept.
func (f *Founding) Aside(member string) (string, error) {
	return moveAside(f.files, f.datastore, "replaced", member)
}

// syncTree syncs a directory and all below it.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("host: sync: %w", err)
		}
		return syncDir(path) // a file is synced the same way
	})
}
