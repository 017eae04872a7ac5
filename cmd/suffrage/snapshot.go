package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership/etcd"
	"suffrage/snapshots"
)

func newSnapshotCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Save, check and restore copies of the datastore",
		Long: `A snapshot is a copy of the datastore of one voter, in one file named
TIME_HOST_REVISION.db. It holds every secret of the cluster: keep it as safe as
the cluster, and keep a copy on another machine.

docs/snapshots.md tells how to come back from one.`,
		Example: `  suffrage snapshot save --from h2
  suffrage snapshot list
  suffrage snapshot verify --drill FILE
  suffrage snapshot restore FILE --to /var/lib/suffrage/etcd`,
	}
	c.AddCommand(newSnapshotSaveCmd(), newSnapshotListCmd(), newSnapshotVerifyCmd(), newSnapshotRestoreCmd(), newSnapshotScratchCmd())
	return c
}

func newSnapshotSaveCmd() *cobra.Command {
	var from, dir string
	c := &cobra.Command{
		Use:   "save",
		Short: "Save a snapshot of one voter on this host, and verify it",
		Long: `Takes the database of one named voter through etcd's API, writes it on this
host, syncs it, reads it again to its end, and only then gives it its name. If
it is interrupted, there is no new snapshot. It needs as much free space as the
database is large. It works without quorum too, and then says so: what was
written elsewhere is missing.

It reads the voter's whole disk copy at full speed; prefer a voter that does not
lead. The progress is on stderr when it takes longer than 2 s.

Exit codes: 0 saved and verified; 1 not saved, with the reason; 2 wrong
arguments or settings, or a host that is not in the roster.`,
		Example: `  suffrage snapshot save                          # of this host's own member
  suffrage snapshot save --from h2 --dir /mnt/backup
  suffrage snapshot save --from h2 -o json | jq -r .path`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			if from == "" {
				from = f.Host
			}
			if err := f.known(from); err != nil {
				return err
			}
			if dir == "" {
				dir = f.Snapshots.Dir
			}
			s, err := f.saveSnapshot(c, from, dir)
			if err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(c.OutOrStdout(), s)
			}
			w := c.OutOrStdout()
			fmt.Fprintln(w, s.Path)
			fmt.Fprintf(w, "saved from %s (member %s) and verified in %.1f s: revision %d, %d keys, %s\n", s.Host, s.Member, float64(s.Took)/1000, s.Revision, s.Keys, bytesText(s.Size))
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", "", "the voter's host (default: this host)")
	c.Flags().StringVar(&dir, "dir", "", "directory to save in, made if it is missing (default: snapshots under data)")
	_ = c.RegisterFlagCompletionFunc("from", func(c *cobra.Command, _ []string, s string) ([]string, cobra.ShellCompDirective) {
		return completeHosts(c, nil, s)
	})
	return c
}

func (f *fleet) saveSnapshot(c *cobra.Command, from, dir string) (snapshots.Saved, error) {
	stop := noteSlow(c, "still looking for a voter that answers")
	ob := etcd.NewObserver(f.Etcd, etcd.Options{HostOf: hostOf(f.roster), ReadOnly: true}).Observe(c.Context())
	stop()
	src, err := snapshots.SourceOf(ob, f.Etcd, from)
	if errors.Is(err, snapshots.ErrNoVote) {
		return snapshots.Saved{}, fmt.Errorf("%w; name one of them: --from HOST", err)
	}
	if err != nil {
		return snapshots.Saved{}, err
	}
	if ob.Error != "" {
		fmt.Fprintln(c.ErrOrStderr(), wrap("note: there is no quorum ("+ob.Error+"); this is what "+from+" has, and newer writes may be elsewhere", ""))
	}
	p := newTransfer(c.ErrOrStderr())
	s, err := snapshots.Save(c.Context(), src, dir, p.say)
	p.end()
	if call := (*etcd.CallError)(nil); errors.As(err, &call) && c.Context().Err() == nil {
		what, next := etcd.Explain(err, call.Endpoint)
		return s, fmt.Errorf("nothing was saved from %s (%s): %s; %s", from, call.Endpoint, what, next)
	}
	return s, err
}

// transfer shows how far a save is, once it takes long.
type transfer struct {
	w        io.Writer
	terminal bool
	last     time.Duration
}

func newTransfer(w io.Writer) *transfer { return &transfer{w: w, terminal: isTerminal(w)} }

func (t *transfer) say(p snapshots.Progress) {
	switch {
	case p.Elapsed < 2*time.Second:
	case t.terminal:
		t.last = p.Elapsed
		fmt.Fprintf(t.w, "\rsaving: %-60s", p)
	case p.Elapsed-t.last >= 5*time.Second || p.Bytes == p.Total:
		t.last = p.Elapsed
		fmt.Fprintf(t.w, "saving: %v\n", p)
	}
}

func (t *transfer) end() {
	if t.terminal && t.last > 0 {
		fmt.Fprintf(t.w, "\r%68s\r", "")
	}
}
