package standby

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"suffrage/membership/host"
)

// action is one change that is to be made; without a kind it leaves no trace.
type action struct {
	change
	// say is what it does, for people.
	say string
	do  func(context.Context) error
}

// Prepare lays down what is missing of what it can, and says each thing that it
// did. Dry, it says what it would do and does nothing.
func (h Host) Prepare(ctx context.Context, dry bool) (did []string, err error) {
	if !dry {
		if os.Geteuid() != 0 && h.Root == "" {
			return nil, errors.New("standby: only root can prepare a host: sudo suffrage standby prepare; --dry-run says what that would do")
		}
	}
	todo, err := h.plan(ctx)
	if err != nil || len(todo) == 0 {
		return nil, err
	}
	if dry {
		for _, a := range todo {
			did = append(did, a.say)
		}
		return did, nil
	}
	unlock, err := h.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if todo, err = h.plan(ctx); err != nil { // somebody else may just have done it
		return nil, err
	}
	m, err := h.manifest()
	if err == nil && m == nil {
		m, err = h.begin()
	}
	if err != nil {
		return nil, err
	}
	for _, a := range todo {
		if a.Kind != "" {
			m.note(a.change)
		}
		if err := h.save(m); err != nil { // also for a fence alone: what was in the data directory is said there
			return did, err
		}
		if err := a.do(ctx); err != nil {
			return did, fmt.Errorf("standby: %s: %w; given again it goes on from here", a.say, err)
		}
		did = append(did, a.say)
	}
	return did, nil
}

// plan is what Prepare would do: the data directory and the fence first, and what
// has a boot start anything last of all.
func (h Host) plan(ctx context.Context) ([]action, error) {
	uid, gid, err := h.owner()
	if errors.Is(err, errNoUser) {
		err = fmt.Errorf("%w: %s", err, h.user().Help)
	}
	if err != nil {
		return nil, fmt.Errorf("standby: prepare: %w", err)
	}
	if c := h.namespaces(); c.State != OK { // before units are laid down that could not start
		return nil, fmt.Errorf("standby: prepare: %s: %s", c.Found, c.Help)
	}
	todo, err := h.planData(uid, gid)
	if err != nil {
		return nil, err
	}
	fence, err := h.planFence(ctx, uid, gid)
	if err != nil {
		return nil, err
	}
	todo = append(todo, h.planFolders(uid, gid)...)
	todo = append(todo, h.planK3s()...)
	files, err := h.planFiles()
	if err != nil {
		return nil, err
	}
	units, err := h.planUnits(ctx, len(files) > 0)
	return slices.Concat(todo, fence, files, units), err
}

// planDir makes a directory and what is missing above it.
func (h Host) planDir(path string, f former) (out []action) {
	if _, err := os.Lstat(h.at(path)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if up := filepath.Dir(path); up != path {
		out = h.planDir(up, former{Mode: 0o755, UID: os.Geteuid(), GID: os.Getegid()})
	}
	return append(out, h.makeDir(path, f))
}

func (h Host) makeDir(path string, f former) action {
	at := h.at(path)
	return action{change{Kind: madeDirectory, Path: path}, "make directory " + path, func(context.Context) error {
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		return errors.Join(os.Chmod(at, f.Mode), os.Lchown(at, f.UID, f.GID), syncDir(filepath.Dir(at)))
	}}
}

func (h Host) planData(uid, gid int) ([]action, error) {
	at := h.at(h.Data)
	was, err := as(at)
	if err != nil {
		return nil, fmt.Errorf("standby: prepare: %w", err)
	}
	if was == nil {
		return h.planDir(h.Data, former{Mode: dataMode, UID: uid, GID: gid}), nil
	}
	mode := was.Mode & dataMode
	if was.UID == uid && was.Mode == mode {
		return nil, nil
	}
	say := fmt.Sprintf("give %s to user %d, with mode %04o", h.Data, uid, mode)
	return []action{{change{Kind: madeDirectory, Path: h.Data, Was: was}, say, func(context.Context) error {
		return errors.Join(os.Lchown(at, uid, gid), os.Chmod(at, mode))
	}}}, nil
}

// planFolders makes what one process alone writes: systemd grants and bars only what
// is there when it starts a unit (systemd.exec(5), ReadWritePaths=). Those in data come
// behind data itself.
func (h Host) planFolders(uid, gid int) (out []action) {
	for _, name := range folders {
		path, mode := filepath.Join(h.Data, name), fs.FileMode(0o700)
		switch {
		case name == decisions:
			path, mode = h.Records, dataMode
		case h.K3s != nil: // there is no member to be barred
			continue
		}
		f := former{Mode: mode, UID: uid, GID: gid}
		if filepath.Dir(path) != filepath.Clean(h.Data) {
			out = append(out, h.planDir(path, f)...)
		} else if _, err := os.Lstat(h.at(path)); errors.Is(err, fs.ErrNotExist) {
			out = append(out, h.makeDir(path, f))
		}
	}
	return out
}

// planK3s makes the directories that K3s makes itself when it runs for the first
// time, those below its data with K3s's mode, and the agent's own.
func (h Host) planK3s() (out []action) {
	made := map[string]bool{}
	for _, dir := range h.k3sDirectories() {
		mode := fs.FileMode(0o755)
		if filepath.Dir(dir) == filepath.Clean(h.K3s.DataDir) {
			mode = 0o700
		}
		for _, a := range h.planDir(dir, former{Mode: mode, UID: os.Geteuid(), GID: os.Getegid()}) {
			if !made[a.Path] {
				made[a.Path] = true
				out = append(out, a)
			}
		}
	}
	return out
}

// wantsFence reports whether a host has none and is no voter.
func (h Host) wantsFence(ctx context.Context) (bool, error) {
	s, err := h.standing()
	if err != nil || s.Fence != "" || h.unfenced(s) != "" {
		return false, err
	}
	running, _, err := h.runs(ctx)
	if err == nil && running {
		err = fmt.Errorf("%s runs here without a datastore in %s: then this host is no standby, and a fence would keep its server from starting again; look at member.data_dir (k3s.data_dir)", h.serverName(), h.Datastore)
	}
	return err == nil, err
}

// hold keeps whoever takes orders here from starting a member, until it is closed.
func (h Host) hold(ctx context.Context, uid, gid int) (*host.Preparing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, orderTime, errors.New("an order is carried out here"))
	defer cancel()
	return host.Prepare(ctx, h.at(h.Data), uid, gid)
}

// orderTime is how long an order that is under way is waited for.
const orderTime = 10 * time.Second

// planFence puts a fence up on a host that is no voter. An agent that runs here
// already may be given an order at any moment, so that it is asked again while none
// can be carried out.
func (h Host) planFence(ctx context.Context, uid, gid int) ([]action, error) {
	if wanted, err := h.wantsFence(ctx); err != nil {
		return nil, fmt.Errorf("standby: prepare: %w", err)
	} else if !wanted {
		return nil, nil
	}
	path := filepath.Join(h.Data, "fence.json")
	return []action{{change{}, "put up the fence, " + path, func(ctx context.Context) error {
		held, err := h.hold(ctx, uid, gid)
		if err != nil {
			return err
		}
		defer held.Close()
		if wanted, err := h.wantsFence(ctx); err != nil {
			return err
		} else if !wanted {
			return errors.New("an order was carried out here just now")
		}
		return held.PutFence(h.Now())
	}}}, nil
}

func (h Host) planFiles() (out []action, err error) {
	made := map[string]bool{}
	for _, s := range h.shipped() {
		dir := filepath.Dir(s.path)
		if _, err := os.Stat(h.at(dir)); s.path == rulesFile && errors.Is(err, fs.ErrNotExist) {
			continue // no polkit: the check says so
		}
		was, err := as(h.at(s.path))
		if err != nil {
			return nil, fmt.Errorf("standby: prepare: %w", err)
		}
		if was != nil && string(was.Content) == s.content {
			continue
		}
		for _, a := range h.planDir(dir, former{Mode: 0o755, UID: os.Geteuid(), GID: os.Getegid()}) {
			if !made[a.Path] {
				made[a.Path] = true
				out = append(out, a)
			}
		}
		out = append(out, action{change{Kind: wroteFile, Path: s.path, Was: was, Wrote: sum([]byte(s.content))}, "write " + s.path, func(context.Context) error {
			return replace(h.at(s.path), []byte(s.content), former{Mode: 0o644, UID: os.Geteuid(), GID: os.Getegid()})
		}})
	}
	return out, nil
}

// planUnits has a boot start what it should, if the fence lets it.
func (h Host) planUnits(ctx context.Context, written bool) (out []action, err error) {
	stale := written
	var boots []action
	for _, u := range h.all() {
		f, err := h.Systemd.File(ctx, u.Systemd)
		if err != nil {
			return nil, fmt.Errorf("standby: prepare: %w", err)
		}
		stale = stale || f.Stale
		ours := slices.ContainsFunc(h.shipped(), func(s shipped) bool { return s.path == filepath.Join(unitDir, u.Name) })
		if !u.boots || f.Enabled == "enabled" || f.Loaded == "masked" || f.Loaded != "loaded" && !ours {
			continue // done, or not ours to do: the check says which
		}
		boots = append(boots, action{change{Kind: enabledUnit, Path: u.Name}, "enable " + u.Name, func(ctx context.Context) error {
			return h.Systemd.Enable(ctx, u.Name, true)
		}})
	}
	if stale {
		out = append(out, action{change{}, "have systemd read its files again", h.Systemd.Reload})
	}
	return append(out, boots...), nil
}
