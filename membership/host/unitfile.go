package host

import (
	"context"
	"fmt"

	godbus "github.com/godbus/dbus/v5"
)

// UnitFile is a unit as its files make it: what a boot would start, and how.
type UnitFile struct {
	// Loaded is systemd's word: loaded, masked, not-found, or what is wrong.
	Loaded string
	// Fragment is the file that counts, and DropIns those that change it.
	Fragment string
	DropIns  []string
	// Stale: the files are newer than what systemd has loaded of them.
	Stale bool
	// Enabled is systemd's word: enabled, disabled, static, …; empty where there is
	// no unit.
	Enabled string
	// Running: its process is there, which has this number.
	Running bool
	PID     uint32
	// Program is what it starts.
	Program []string
	// Unsafe is why an agent would not run it: masked, stale, it does not honour the
	// fence, or a *CommandLineError. Nil where that cannot be asked: of a unit that is not loaded.
	Unsafe error
}

// File looks at the unit's files as systemd has loaded them, and changes nothing.
// A unit that does not exist is no error.
func (u Systemd) File(ctx context.Context) (f UnitFile, err error) {
	err = u.with(ctx, "look at", func(c *connection) error {
		all, err := c.GetUnitPropertiesContext(ctx, c.name)
		if err != nil {
			return err
		}
		for name, to := range map[string]any{"LoadState": &f.Loaded, "FragmentPath": &f.Fragment, "DropInPaths": &f.DropIns, "UnitFileState": &f.Enabled} {
			if err := godbus.Store([]any{all[name]}, to); err != nil {
				return fmt.Errorf("property %s: %w", name, err)
			}
		}
		if f.Loaded != "loaded" && f.Loaded != "masked" {
			return nil
		}
		p, err := c.properties(ctx)
		if err != nil {
			return err
		}
		f.Stale, f.Running, f.PID, f.Unsafe = p.stale, p.running(), p.pid, u.safe(p)
		if len(p.starts) > 0 {
			f.Program = p.starts[0].Args
		}
		return nil
	})
	return f, err
}

// Reload has systemd read all files of units again. Like the two below it is no
// order's: only root may, from the command line.
func (u Systemd) Reload(ctx context.Context) error {
	return u.with(ctx, "reload the files of", func(c *connection) error { return c.ReloadContext(ctx) })
}

// Enable has the unit started at boot, or no more.
func (u Systemd) Enable(ctx context.Context, on bool) error {
	return u.with(ctx, "enable or disable", func(c *connection) error {
		var err error
		if on {
			_, _, err = c.EnableUnitFilesContext(ctx, []string{u.Name}, false, false)
		} else {
			_, err = c.DisableUnitFilesContext(ctx, []string{u.Name}, false)
		}
		if err != nil {
			return err
		}
		return c.ReloadContext(ctx)
	})
}
