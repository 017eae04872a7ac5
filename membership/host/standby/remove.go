package standby

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"suffrage/membership/host"
)

// ErrMember is why nothing is removed of a host that is in the cluster, or may be.
var ErrMember = errors.New("standby: remove: this host may be a member")

// Remove puts the host back to what it was before Prepare, and says each thing
// that it did. votes tells what the host is in the cluster: empty where it has no
// member. Dry, it says what it would do and does nothing.
func (h Host) Remove(ctx context.Context, dry bool, votes func(context.Context) (string, error)) (did []string, err error) {
	if os.Geteuid() != 0 && h.Root == "" {
		return nil, errors.New("standby: only root can take away what prepare laid down: sudo suffrage standby remove")
	}
	m, err := h.manifest()
	if err != nil || m == nil {
		return nil, err
	}
	unlock, err := h.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if !dry {
		// Until the end: what was found is only worth something while nobody starts a
		// member, whose datastore would be moved from under it.
		uid, gid, err := h.owner()
		if err != nil {
			uid, gid = os.Geteuid(), os.Getegid()
		}
		held, err := h.hold(ctx, uid, gid)
		switch {
		case err == nil:
			defer held.Close()
		case !errors.Is(err, host.ErrNoData):
			return nil, fmt.Errorf("%w: %w", ErrMember, err)
		}
	}
	if err := h.noMember(ctx, votes); err != nil {
		return nil, err
	}
	todo, err := h.undo(ctx, m)
	if err != nil {
		return nil, err
	}
	for _, a := range todo {
		if !dry {
			if err := a.do(ctx); err != nil {
				return did, fmt.Errorf("standby: %s: %w; given again it goes on from here", a.say, err)
			}
		}
		did = append(did, a.say)
	}
	return did, nil
}

// noMember refuses while the host has a member, or nobody knows.
func (h Host) noMember(ctx context.Context, votes func(context.Context) (string, error)) error {
	running, _, err := h.runs(ctx)
	if err != nil {
		return fmt.Errorf("%w: what runs here is not known: %w", ErrMember, err)
	}
	if running {
		return fmt.Errorf("%w: %s runs: move its vote away first (suffrage swap), then it is stopped", ErrMember, h.serverName())
	}
	s, err := h.standing()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMember, err)
	}
	if s.Role == host.Voter {
		return fmt.Errorf("%w: its role file says voter: move its vote away first (suffrage swap, or remove-dead)", ErrMember)
	}
	role, err := votes(ctx)
	if err != nil {
		return fmt.Errorf("%w: whether it is cannot be told now, and taking the server of a voter away would cost a vote: %w; ask again when that answers", ErrMember, err)
	}
	if role != "" {
		return fmt.Errorf("%w: the member list has it as a %s: move its vote away first (suffrage swap, or remove-dead)", ErrMember, role)
	}
	return nil
}

// undo is what Remove would do: what runs first, the fence last, with the data.
func (h Host) undo(ctx context.Context, m *manifest) (out []action, err error) {
	changes := slices.Clone(m.Changes)
	slices.Reverse(changes)
	for _, c := range changes {
		if c.Kind != wroteFile || c.Was != nil || filepath.Dir(c.Path) != unitDir {
			continue
		}
		unit := filepath.Base(c.Path)
		f, err := h.Systemd.File(ctx, host.Systemd{Name: unit, Data: h.Data})
		if err != nil {
			return nil, fmt.Errorf("standby: remove: %w", err)
		}
		if f.Running {
			out = append(out, action{change{}, "stop " + unit, func(ctx context.Context) error { return h.Systemd.Stop(ctx, unit) }})
		}
	}
	off := map[string]bool{}
	for _, c := range changes {
		if c.Kind == enabledUnit {
			off[c.Path] = true
			out = append(out, h.disable(c.Path, ""))
		}
	}
	if name := h.serverName(); h.K3s != nil && !off[name] {
		f, err := h.Systemd.File(ctx, h.server())
		if err != nil {
			return nil, fmt.Errorf("standby: remove: %w", err)
		}
		if f.Enabled == "enabled" { // as it was, and without the fence a boot would have K3s join again
			out = append(out, h.disable(name, ", though it was enabled before: without the fence a boot would have it join again"))
		}
	}
	for _, c := range changes {
		if c.Kind == wroteFile {
			out = append(out, h.restore(c)...)
		}
	}
	out = append(out, action{change{}, "have systemd read its files again", h.Systemd.Reload})
	out = append(out, h.putAside(m)...)
	for _, c := range changes {
		if c.Kind == madeDirectory && (c.Path != m.Data || c.Was != nil) {
			out = append(out, h.giveBack(c)...)
		}
	}
	return append(out, action{change{}, "forget what was prepared", func(context.Context) error {
		return errors.Join(os.Remove(h.manifestFile()), os.Remove(h.at(manifestDir)), syncDir(filepath.Dir(h.at(manifestDir))))
	}}), nil
}

func (h Host) disable(unit, why string) action {
	return action{change{}, "disable " + unit + why, func(ctx context.Context) error {
		f, err := h.Systemd.File(ctx, host.Systemd{Name: unit, Data: h.Data})
		if err != nil || f.Enabled != "enabled" {
			return err
		}
		return h.Systemd.Enable(ctx, unit, false)
	}}
}

// restore puts a file back, unless somebody changed it since.
func (h Host) restore(c change) []action {
	at := h.at(c.Path)
	now, err := as(at)
	switch {
	case err == nil && now == nil && c.Was == nil:
		return nil
	case err != nil, now != nil && sum(now.Content) != c.Wrote && (c.Was == nil || sum(now.Content) != sum(c.Was.Content)):
		return []action{{change{}, "leave " + c.Path + ", which was changed since", func(context.Context) error { return nil }}}
	case c.Was == nil:
		return []action{{change{}, "remove " + c.Path, func(context.Context) error {
			if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return syncDir(filepath.Dir(at))
		}}}
	}
	return []action{{change{}, "put back " + c.Path, func(context.Context) error { return replace(at, c.Was.Content, *c.Was) }}}
}

// giveBack removes a directory that was made, if nothing else is in it now, or
// gives it back its owner and mode.
func (h Host) giveBack(c change) []action {
	at := h.at(c.Path)
	if c.Was == nil {
		return []action{{change{}, "remove directory " + c.Path + ", if it is empty", func(context.Context) error {
			if err := os.Remove(at); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}}}
	}
	return []action{{change{}, "give back " + c.Path, func(context.Context) error {
		return errors.Join(os.Chmod(at, c.Was.Mode), os.Lchown(at, c.Was.UID, c.Was.GID))
	}}}
}

// putAside moves what came since out of the way: the datastore, and whatever else
// is in the data directory. Nothing is deleted.
func (h Host) putAside(m *manifest) (out []action) {
	data, aside := h.at(m.Data), h.at(m.Data)+".removed-"+h.Now().UTC().Format("20060102T150405Z")
	if in, err := filepath.Rel(m.Data, h.Datastore); err != nil || !filepath.IsLocal(in) {
		if s, err := h.standing(); err != nil || s.Datastore {
			out = append(out, action{change{}, "move the datastore " + h.Datastore + " aside", func(context.Context) error {
				_, err := host.PutAside(h.at(h.Datastore))
				return err
			}})
		}
	}
	entries, err := os.ReadDir(data)
	var came []string
	for _, e := range entries {
		if m.Entries == nil || !slices.Contains(m.Entries, e.Name()) {
			came = append(came, e.Name())
		}
	}
	switch {
	case err == nil && m.Entries == nil && len(came) == 0:
		out = append(out, action{change{}, "remove directory " + m.Data, func(context.Context) error { return os.Remove(data) }})
	case err == nil && len(came) > 0:
		out = append(out, action{change{}, fmt.Sprintf("move what is in %s since then, the fence last, to %s.removed-*", m.Data, m.Data), func(context.Context) error {
			return moveAside(data, aside, came, m.Entries == nil)
		}})
	}
	return out
}

// moveAside renames a directory, or some of what is in it; where it is a mount
// point, into itself.
func moveAside(dir, aside string, names []string, whole bool) error {
	var in, over unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &in), unix.Stat(filepath.Dir(dir), &over)); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	switch mounted := in.Dev != over.Dev; {
	case mounted:
		aside = filepath.Join(dir, filepath.Base(aside))
	case whole:
		if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, aside, unix.RENAME_NOREPLACE); err != nil {
			return &os.LinkError{Op: "rename", Old: dir, New: aside, Err: err}
		}
		return syncDir(filepath.Dir(dir))
	}
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b string) int { return boolInt(a == "fence.json") - boolInt(b == "fence.json") })
	for _, n := range names {
		err := unix.Rename(filepath.Join(dir, n), filepath.Join(aside, n))
		if err != nil {
			return &os.LinkError{Op: "rename", Old: filepath.Join(dir, n), New: aside, Err: err}
		}
	}
	return errors.Join(syncDir(aside), syncDir(dir), syncDir(filepath.Dir(dir)))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
