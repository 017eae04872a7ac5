package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"suffrage/identity"
	"suffrage/snapshots"
)

type restoreFlags struct {
	to, name, peerURL, token string
	cluster                  map[string]string
	bump                     int64
}

func newSnapshotRestoreCmd() *cobra.Command {
	var r restoreFlags
	c := &cobra.Command{
		Use:   "restore FILE --to DIR",
		Short: "Make a new datastore of a snapshot",
		Long: `Verifies the snapshot and makes a NEW data directory of it, as the first start
of a new cluster; a directory that exists is refused, and nothing is started.

What is not given comes from the settings of this host: the member has this
host's name and peer URL, and is alone in its cluster; the others join it later
with empty datastores. To restore several at once, run this on each with the
same FILE, --initial-cluster, --bump-revision and --token.

The revision is raised and all history before it counts as compacted, so that
clients with a cache (controllers, the API server) notice and read everything
again. Member and cluster IDs are new.

Before: stop every member of the old cluster and move its datastore aside, or
there will be two clusters. Run this as the user that runs the member, or give
the directory to that user.

Exit codes: 0 restored; 1 not, with the reason, and DIR does not exist; 2 wrong
arguments or settings, or a host that is not in the roster.`,
		Example: `  suffrage snapshot restore FILE --to /var/lib/suffrage/etcd
  suffrage snapshot restore FILE --to /var/lib/suffrage/etcd --name h1 \
      --initial-cluster h1=https://10.0.0.1:2380,h2=https://10.0.0.2:2380`,
		Args: exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := r.options(c)
			if err != nil {
				return usage(err)
			}
			defer noteSlow(c, "still restoring, from the whole of the file")()
			out, err := snapshots.Restore(c.Context(), args[0], o)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%w; suffrage snapshot list names those of this host", err)
			case err != nil:
				return err
			case wantsJSON(c):
				return printJSON(c.OutOrStdout(), out)
			}
			printRestored(c, out)
			return nil
		},
	}
	p := c.Flags()
	p.StringVar(&r.to, "to", "", "the new data directory; it must not exist")
	p.StringVar(&r.name, "name", "", "the member's name, which is its host's (default: this host)")
	p.StringVar(&r.peerURL, "peer-url", "", "its peer URL (default: member.advertise_peer of the settings)")
	p.StringToStringVar(&r.cluster, "initial-cluster", nil, "all members of the new cluster, NAME=PEER-URL,… (default: this one alone)")
	p.Int64Var(&r.bump, "bump-revision", snapshots.DefaultBump, "how far to raise the revision, at least 1: more than was written since the snapshot")
	p.StringVar(&r.token, "token", "", "makes IDs differ from other restores; the same for all members of one (default: from the snapshot's hash)")
	return c
}

// options fills in from the settings what was not given, and checks the names.
func (r restoreFlags) options(c *cobra.Command) (snapshots.RestoreOptions, error) {
	o := snapshots.RestoreOptions{Name: r.name, Cluster: map[string]string{}, Token: r.token, Bump: r.bump}
	if r.to == "" {
		return o, errors.New("say where the new datastore goes: --to DIR; it must not exist")
	}
	if r.bump < 1 {
		return o, fmt.Errorf("--bump-revision %d: at least 1; without it clients with a cache go wrong and do not notice", r.bump)
	}
	var err error
	if o.Dir, err = filepath.Abs(r.to); err != nil {
		return o, err
	}
	maps.Copy(o.Cluster, r.cluster)
	given := r.name != "" && (r.peerURL != "" || r.cluster[r.name] != "")
	s, err := loadSettings(c)
	switch {
	case given && errors.Is(err, fs.ErrNotExist):
		// A machine that has no settings yet, in the middle of a disaster.
		fmt.Fprintf(c.ErrOrStderr(), "note: there is no %s, so the names are not checked against a roster\n", c.Flag("config").Value)
	case err != nil:
		return o, err
	default:
		if err := r.fromSettings(&o, s); err != nil {
			return o, err
		}
	}
	if was := o.Cluster[o.Name]; r.peerURL != "" && was != "" && was != r.peerURL {
		return o, fmt.Errorf("--initial-cluster gives %s the peer URL %s, --peer-url says %s", o.Name, was, r.peerURL)
	}
	if r.peerURL != "" {
		o.Cluster[o.Name] = r.peerURL
	}
	return o, nil
}

func (r restoreFlags) fromSettings(o *snapshots.RestoreOptions, s Settings) error {
	roster, err := identity.LoadRoster(s.rosterFile())
	if err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = s.Host
	}
	for _, name := range append([]string{o.Name}, slices.Sorted(maps.Keys(o.Cluster))...) {
		if err := (&fleet{Settings: s, roster: roster}).known(name); err != nil {
			return err
		}
	}
	if r.peerURL != "" || o.Cluster[o.Name] != "" {
		return nil
	}
	if o.Name != s.Host {
		return fmt.Errorf("%s is another host: say its peer URL: --peer-url https://ADDRESS:2380", o.Name)
	}
	m, err := s.member()
	if err != nil {
		return err
	}
	o.Cluster[o.Name] = m.AdvertisePeer
	if m.AdvertisePeer == "" {
		o.Cluster[o.Name] = m.ListenPeer
	}
	return nil
}

func printRestored(c *cobra.Command, r snapshots.Restored) {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "restored: %s, member %s of a new cluster of %s\n", r.Dir, r.Member, strings.Join(slices.Sorted(maps.Keys(r.Cluster)), ", "))
	fmt.Fprintf(w, "revision %d (the snapshot's %d, raised by %d), %d keys\n\nnext:\n", r.Revision, r.From.Revision, r.Revision-r.From.Revision, r.From.Keys)
	steps := []string{
		"be sure that no member of the old cluster runs, on any host",
		fmt.Sprintf("let member.data_dir be %s, owned by the user that runs the member, and start it: suffrage member", r.Dir),
		"accept the new cluster, or Suffrage refuses everything (cluster-replaced): suffrage cluster accept CLUSTER-ID; suffrage status names the ID",
	}
	if os.Getuid() != 0 {
		steps[1] = fmt.Sprintf("let member.data_dir be %s and start it as this user: suffrage member", r.Dir)
	}
	if len(r.Cluster) > 1 {
		steps = slices.Insert(steps, 1, "restore the same file on the other hosts with --token "+r.Token+" and the same --initial-cluster and --bump-revision")
	}
	for i, s := range steps {
		text := wrap(s, "     ")
		fmt.Fprintf(w, "  %d. %s\n", i+1, strings.TrimPrefix(text, "     "))
	}
}
