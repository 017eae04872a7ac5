package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Standing is what a host has of any cluster, read at the moment it is asked
// for: what has to be known before a cluster is made anywhere in the fleet.
type Standing struct {
	// Datastore: there is one where a member would look for it; Cluster and Member
	// say of which it is, where that could be read.
	Datastore bool   `json:"datastore"`
	Cluster   string `json:"cluster,omitempty"`
	Member    string `json:"member,omitempty"`
	// Running: a process has the datastore open.
	Running bool `json:"running"`
	// Fence says who put up the fence, empty where there is none.
	Fence string `json:"fence,omitempty"`
	// Prepared: the fence is that of a standby that was prepared and never anything
	// else, which is nothing of a cluster.
	Prepared bool `json:"prepared,omitempty"`
	// Role is the role file's, empty where there is none.
	Role string `json:"role,omitempty"`
	// Join is the operation that told this host to join, with no datastore yet.
	Join string `json:"join,omitempty"`
	// Record is that of a cluster that was made here.
	Record *Cluster `json:"record,omitempty"`
	// Aside are datastores out of use: history, which stands in nobody's way.
	Aside []Aside `json:"aside,omitempty"`
}

// Aside is a datastore that was moved aside.
type Aside struct {
	Path    string `json:"path"`
	Cluster string `json:"cluster,omitempty"`
}

// maxAside bounds how many of them are told.
const maxAside = 32

// Clean reports whether a host has nothing of any cluster but history.
func (s Standing) Clean() bool {
	return !s.Datastore && !s.Running && (s.Fence == "" || s.Prepared) && s.Role == "" && s.Join == "" && s.Record == nil
}

// StandingOf reads a host's files and changes nothing. identity tells of which
// cluster and member the datastore in a data directory is.
func StandingOf(data, datastore string, identity func(dataDir string) (cluster, member string)) (Standing, error) {
	var (
		s Standing
		r role
		d = files{path: data}
	)
	if f, ok := errors.AsType[*FencedError](Fenced(data)); ok {
		s.Fence, s.Prepared = f.Why, f.Prepared
	}
	there, err := d.read(roleFile, &r)
	if err != nil {
		return s, err
	}
	if there {
		s.Role = r.Role
	}
	if s.Record, err = ClusterRecord(data); err != nil {
		return s, err
	}
	join, err := Joining(data)
	if err != nil {
		return s, err
	}
	if join != nil {
		s.Join = join.Operation
	}
	if s.Datastore, err = hasDatastore(datastore); err != nil {
		return s, err
	}
	if s.Datastore {
		s.Cluster, s.Member = identity(datastore)
	}
	switch err := idle(datastore); {
	case err == nil:
	case errors.Is(err, errInUse):
		s.Running = true
	default:
		return s, err
	}
	s.Aside = asides(datastore, identity)
	return s, nil
}

// asides finds what moveAside, or a person in the same way, left: beside the
// datastore's directory, and within it where that is a mount point.
func asides(datastore string, identity func(string) (string, string)) []Aside {
	var out []Aside
	add := func(dir, prefix string) {
		entries, _ := os.ReadDir(dir) // history: what cannot be read is not told
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && len(out) < maxAside {
				path := filepath.Join(dir, e.Name())
				cluster, _ := identity(path)
				out = append(out, Aside{path, cluster})
			}
		}
	}
	add(filepath.Dir(datastore), filepath.Base(datastore)+".")
	add(datastore, "removed-")
	add(datastore, "replaced-")
	return out
}
