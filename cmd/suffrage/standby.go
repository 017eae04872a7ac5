package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"suffrage/agent"
	"suffrage/config"
	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership/founding"
	"suffrage/membership/host"
	"suffrage/membership/host/standby"
)

func newStandbyCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "standby",
		Short:   "Ready this host to hold a vote, and say what it lacks",
		Example: "  sudo suffrage standby prepare\n  sudo suffrage standby check",
	}
	c.AddCommand(newStandbyCheckCmd(), newStandbyPrepareCmd(), newStandbyRemoveCmd())
	return c
}

func newStandbyCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "What this host lacks to be given a vote",
		Long: `Looks at this host and changes nothing: settings, program, user, the kernel's
user namespaces, directories, units as systemd has loaded them, the agent's leave
to start the server, the fence, certificates, an old datastore, ports, the clock,
the disk. Each check is ok, missing, wrong, or unknown where it could not be
looked at; run it as root to have all of it told. Time and fsync are those that
this host's agent measured, where it runs.

The agent looks at the part that only its host can tell (units, user namespaces,
certificates, ports) every half minute; a host that lacks any of it gets no vote
(not-qualified).

Exit codes: 0 every check is ok; 1 one is not; 2 the command line or the settings file is
wrong.`,
		Example: "  sudo suffrage standby check\n  suffrage standby check -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := standbyOf(c)
			if err != nil {
				return err
			}
			stop := noteSlow(c, "still looking at this host, and asking the agents of the others")
			checks := h.Check(c.Context())
			stop()
			return printChecks(c, h.Entry.Name, checks)
		},
	}
}

// StandbyCheck is what `suffrage standby check -o json` prints.
type StandbyCheck struct {
	Host   string          `json:"host"`
	Ready  bool            `json:"ready"`
	Checks []standby.Check `json:"checks"`
}

func printChecks(c *cobra.Command, name string, checks []standby.Check) error {
	out := StandbyCheck{Host: name, Ready: standby.Ready(checks), Checks: checks}
	if wantsJSON(c) {
		if err := printJSON(c.OutOrStdout(), out); err != nil {
			return err
		}
	} else {
		writeChecks(c.OutOrStdout(), out)
	}
	if !out.Ready {
		return &exitError{code: exitFailed}
	}
	return nil
}

func writeChecks(w io.Writer, out StandbyCheck) {
	amiss := 0
	for _, k := range out.Checks {
		writeCheck(w, k)
		if k.State != standby.OK {
			amiss++
		}
	}
	if out.Ready {
		fmt.Fprintf(w, "\n%s is ready to be given a vote\n", out.Host)
		return
	}
	fmt.Fprintf(w, "\n%s is not ready: %d of %d checks\n", out.Host, amiss, len(out.Checks))
}

func writeCheck(w io.Writer, k standby.Check) {
	text := k.Found
	if k.Subject != "" {
		text = k.Subject + ": " + text
	}
	columns(w, fmt.Sprintf("%-8s %-13s ", k.State, k.Name), text)
	if k.State != standby.OK && k.Help != "" {
		columns(w, "", "→ "+k.Help)
	}
}

// columns writes text behind two columns that say what it is about.
func columns(w io.Writer, first, text string) {
	indent := strings.Repeat(" ", 23)
	fmt.Fprintln(w, fmt.Sprintf("%-23s", first)+strings.TrimPrefix(wrap(text, indent), indent))
}

// standbyOf is this host with whatever is wrong with its settings.
func standbyOf(c *cobra.Command) (standby.Host, error) {
	path := c.Flag("config").Value.String()
	s, err := readSettings(path)
	if err != nil {
		return standby.Host{}, usage(err)
	}
	s.fill()
	key, roster, problems := s.whoIs(path)
	h := s.standby(roster)
	h.Config = path
	for _, e := range problems {
		h.Problems = append(h.Problems, e.Error())
	}
	if key != nil && roster != nil {
		agents := agent.NewClient(key, func() *identity.Roster { return roster })
		h.Report = func(ctx context.Context) (fitness.Report, error) {
			defer agents.Close()
			return agents.Pull(ctx, s.Host, 0)
		}
		h.Report = once(h.Report)
	}
	return h, nil
}

// once asks one time.
func once(ask func(context.Context) (fitness.Report, error)) func(context.Context) (fitness.Report, error) {
	var first sync.Once
	var r fitness.Report
	var err error
	return func(ctx context.Context) (fitness.Report, error) {
		first.Do(func() { r, err = ask(ctx) })
		return r, err
	}
}

// lacks is for the agent, which looks again and again with the settings that it
// started with. The roster it has then may have changed: its own entry cannot
// without its being started again.
func (s Settings) lacks(roster *identity.Roster) func(context.Context) []string {
	return s.standby(roster).Lacks
}

// standby is this host as a standby; without a roster, or where it is not in
// there, its entry has no address.
func (s Settings) standby(roster *identity.Roster) standby.Host {
	h := standby.Host{
		Software: version(), Dir: s.Dir, Data: s.Data, Records: s.records(), Datastore: s.Member.DataDir, Quota: s.Member.Quota, Unit: s.Agent.Unit,
		Systemd: standby.Bus(""), Identity: founding.Identity, Now: time.Now, Synchronised: standby.Synchronised,
	}
	if h.Quota == 0 {
		h.Quota = 2 << 30 // etcd's own
	}
	if entry, ok := roster.ByName(s.Host); ok {
		h.Entry = entry
	}
	h.Entry.Name = s.Host
	if s.Agent.Unit != "" && !host.SystemdUnit.MatchString(s.Agent.Unit) {
		h.Socket = host.Socket(s.Agent.Unit)
	}
	if s.Flavour == k3s {
		h.K3s = &standby.K3s{AgentUnit: s.K3s.AgentUnit, DataDir: s.K3s.DataDir, ConfigDir: s.K3s.ConfigDir}
		return h
	}
	m, err := s.member()
	if errors.Join(err, config.Under("member", m.Validate())) != nil {
		h.Entry.Address = identity.RosterHost{}.Address // nothing can be said of its ports and certificates
		return h
	}
	h.Member = m
	_, h.Founder = m.InitialCluster[s.Host]
	return h
}
