package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership/etcd"
)

// ModeShown is what `suffrage mode -o json` prints.
type ModeShown struct {
	// Mode is dry-run or active.
	Mode string `json:"mode"`
	// From is owner where it was said by this command, settings where nobody did
	// and controller.mode counts.
	From string `json:"from"`
	// By, At and Reason are of the owner.
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Reason string    `json:"reason,omitempty"`
	Paused bool      `json:"paused"`
}

func newModeCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "mode [dry-run|active]",
		Short: "Show or set whether Suffrage acts, or only reports",
		Long: `  dry-run   looks, decides and reports; changes nothing on any host or in etcd's
            membership. The default.
  active    moves votes by itself, one swap at a time, within every guard.

The mode is the fleet's: it is kept in etcd with who set it, when and why, and
goes before controller.mode of the settings files. Going active asks for a
confirmation at the terminal, or --yes. Going back to dry-run is immediate; an
operation under way goes on to its end or turns back.

Exit codes: 0 shown or set; 1 not, with the reason; 2 wrong arguments or
settings, or nobody there to confirm.`,
		Example: `  suffrage mode
  suffrage mode active --reason "three weeks of dry-run were right"
  suffrage mode dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != etcd.DryRun && args[0] != etcd.Active {
				return usage(fmt.Errorf("mode is %s or %s, or left out to show it; got %q", etcd.DryRun, etcd.Active, args))
			}
			return nil
		},
		ValidArgs: []string{etcd.DryRun, etcd.Active},
		RunE: func(c *cobra.Command, args []string) error {
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			if len(args) == 1 && args[0] == etcd.Active {
				if err := confirm(c, "Suffrage will change who votes in etcd, by itself. Which swap it would do now: suffrage plan"); err != nil {
					return err
				}
			}
			ctx, cancel := f.asking(c)
			defer cancel()
			var p etcd.Policy
			if len(args) == 0 {
				p, err = etcd.LoadPolicy(ctx, f.client)
			} else {
				s, bad := saidBy(c)
				if bad != nil {
					return bad
				}
				p, err = etcd.UpdatePolicy(ctx, f.client, func(p etcd.Policy) (etcd.Policy, error) {
					p.Mode = &etcd.Said{Value: args[0], By: s.By, At: s.At, Reason: s.Reason}
					return p, nil
				})
			}
			if err != nil {
				return f.unreachable(err)
			}
			return printMode(c, f.modeOf(p))
		},
	}
	c.Flags().Bool("yes", false, "confirm going active")
	sayFlags(c)
	return c
}

func (f *fleet) modeOf(p etcd.Policy) ModeShown {
	m := ModeShown{Mode: f.Controller.Mode, From: "settings", Paused: p.Paused != nil && p.Paused.Value}
	if p.Mode != nil {
		m.Mode, m.From, m.By, m.At, m.Reason = p.Mode.Value, "owner", p.Mode.By, p.Mode.At, p.Mode.Reason
	}
	return m
}

func printMode(c *cobra.Command, m ModeShown) error {
	if wantsJSON(c) {
		return printJSON(c.OutOrStdout(), m)
	}
	why := "nobody said otherwise than controller.mode in the settings"
	if m.From == "owner" {
		why = fmt.Sprintf("said by %s %s", m.By, ago(m.At, time.Now()))
		if m.Reason != "" {
			why += ": " + m.Reason
		}
	}
	fmt.Fprintf(c.OutOrStdout(), "%s (%s)\n", m.Mode, why)
	if m.Paused {
		fmt.Fprintln(c.OutOrStdout(), "paused: nothing new is started; lift it with: suffrage resume")
	}
	return nil
}

// said is one word of the owner from the flags of a command.
type said struct {
	By, Reason string
	At         time.Time
}

func sayFlags(c *cobra.Command) {
	c.Flags().String("reason", "", "why, for whoever reads it later")
	c.Flags().String("by", "", "who says so (default: you, at this machine)")
}

func saidBy(c *cobra.Command) (said, error) {
	reason, _ := c.Flags().GetString("reason")
	by, _ := c.Flags().GetString("by")
	for flag, text := range map[string]string{"reason": reason, "by": by} {
		if err := oneLine(text); err != nil {
			return said{}, usage(fmt.Errorf("--%s: %w", flag, err))
		}
	}
	return said{By: cmp.Or(by, caller()), Reason: reason, At: time.Now().UTC().Truncate(time.Second)}, nil
}
