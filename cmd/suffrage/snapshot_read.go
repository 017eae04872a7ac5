package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"suffrage/snapshots"
)

func newSnapshotListCmd() *cobra.Command {
	var dir string
	var verify bool
	c := &cobra.Command{
		Use:   "list",
		Short: "The snapshots on this host, newest first",
		Long: `Lists a directory of this host. CHECKED says what is known of each file:
  when saved  it has the name that only a verified file gets; not read now
  now         it was read to its end and is whole (--verify)
  no          a .db file that Suffrage did not name; not read now
  BAD         it is no whole snapshot; the reason is below the table

Exit codes: 0 listed; 1 the directory could not be read, or --verify found a bad
file; 2 wrong arguments or settings.`,
		Example: `  suffrage snapshot list
  suffrage snapshot list --dir /mnt/backup --verify
  suffrage snapshot list -o json | jq -r '.[0].path'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				s, err := loadSettings(c)
				if err != nil {
					return err
				}
				dir = s.Snapshots.Dir
			}
			files, err := snapshots.List(dir)
			if err != nil {
				return err
			}
			if verify {
				defer noteSlow(c, fmt.Sprintf("still reading %d files to their end", len(files)))()
			}
			bad := 0
			for i, f := range files {
				if verify {
					if files[i], err = f.Check(c.Context()); err != nil {
						return err
					}
				}
				if files[i].State == snapshots.StateBad {
					bad++
				}
			}
			if wantsJSON(c) {
				if files == nil {
					files = []snapshots.File{}
				}
				err = printJSON(c.OutOrStdout(), files)
			} else {
				printSnapshots(c, dir, files)
			}
			if err == nil && verify && bad > 0 {
				err = &exitError{code: exitFailed}
			}
			return err
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "directory to list (default: snapshots under data)")
	c.Flags().BoolVar(&verify, "verify", false, "read every file to its end")
	return c
}

func printSnapshots(c *cobra.Command, dir string, files []snapshots.File) {
	w := c.OutOrStdout()
	if len(files) == 0 {
		fmt.Fprintf(w, "no snapshots in %s; take one: suffrage snapshot save\n", dir)
		return
	}
	checked := map[string]string{snapshots.StateSaved: "when saved", snapshots.StateVerified: "now", snapshots.StateForeign: "no", snapshots.StateBad: "BAD"}
	rows := [][]string{{"TIME (UTC)", "AGE", "HOST", "REVISION", "SIZE", "CHECKED", "FILE"}}
	for _, f := range files {
		host, rev := f.Host, strconv.FormatInt(f.Revision, 10)
		if host == "" {
			host = "-"
		}
		if f.Revision == 0 {
			rev = "-"
		}
		rows = append(rows, []string{f.Time.Format("2006-01-02 15:04:05"), age(time.Since(f.Time)), host, rev, bytesText(f.Size), checked[f.State], f.Name()})
	}
	fmt.Fprintf(w, "%s:\n", dir)
	table(w, rows)
	for _, f := range files {
		if f.Problem != "" {
			fmt.Fprintf(w, "\n%s\n%s\n", f.Name(), wrap(f.Problem, "  "))
		}
	}
}

// age is a length of time in one unit: "3 h".
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// Verified is what `suffrage snapshot verify -o json` prints.
type Verified struct {
	Path string `json:"path"`
	OK   bool   `json:"ok"`
	// Problem is why it is not ok.
	Problem string           `json:"problem,omitempty"`
	Facts   *snapshots.Facts `json:"facts"`
	// Drill is null without --drill, and where the drill did not come to compare.
	Drill *snapshots.Drilled `json:"drill"`
}

func newSnapshotVerifyCmd() *cobra.Command {
	var drill bool
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Prove that a snapshot is whole, or with --drill that etcd starts from it",
		Long: `Reads a snapshot to its end: the SHA-256 that etcd appended, every page and
every key of the database, and the revision in its name.

--drill also restores it into a directory for temporary files (TMPDIR), starts a
one-member etcd on it that only this user can reach, through a socket, compares
the number of keys, the revision and etcd's hash with the file's, stops it and
removes everything. It needs the file's size and 128 MiB free, and takes at most
10 min. Lease times run on meanwhile; keys that go with them are counted apart.

Exit codes: 0 whole; 1 not, with the reason, or it could not be read; 2 wrong
arguments.`,
		Example: `  suffrage snapshot verify /var/lib/suffrage/snapshots/20260806T120000Z_h3_48213.db
  suffrage snapshot verify --drill FILE -o json`,
		Args: exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			v, err := verifySnapshot(c, args[0], drill)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w; suffrage snapshot list names those of this host", err)
			}
			if wantsJSON(c) {
				if printed := printJSON(c.OutOrStdout(), v); printed != nil || err == nil {
					return printed
				}
				return &exitError{code: exitFailed}
			}
			if err != nil {
				return err
			}
			printVerified(c, v)
			return nil
		},
	}
	c.Flags().BoolVar(&drill, "drill", false, "start a scratch etcd from it and compare")
	return c
}

func verifySnapshot(c *cobra.Command, path string, drill bool) (Verified, error) {
	v := Verified{Path: path}
	var err error
	if drill {
		defer noteSlow(c, "still restoring it into a scratch etcd, which then reads all of it; 10 min at most")()
		var d snapshots.Drilled
		d, err = snapshots.Drill(c.Context(), path, scratchCommand)
		if d.Snapshot.Size > 0 {
			v.Facts = &d.Snapshot
		}
		if d.Took > 0 {
			v.Drill = &d
		}
	} else {
		defer noteSlow(c, "still reading the file to its end")()
		var f snapshots.Facts
		if f, err = snapshots.Verify(c.Context(), path); err == nil {
			v.Facts = &f
		}
	}
	if v.OK = err == nil; !v.OK {
		v.Problem = err.Error()
	}
	return v, err
}

func printVerified(c *cobra.Command, v Verified) {
	w, f := c.OutOrStdout(), v.Facts
	version := f.StorageVersion
	if version == "" {
		version = "not told (etcd before 3.6)"
	}
	fmt.Fprintf(w, "ok: %s is whole\n", v.Path)
	table(w, [][]string{
		{"  size", fmt.Sprintf("%s (%d bytes)", bytesText(f.Size), f.Size)},
		{"  sha256", f.SHA256},
		{"  revision", fmt.Sprintf("%d, compacted up to %d", f.Revision, f.CompactRevision)},
		{"  keys", strconv.FormatInt(f.Keys, 10)},
		{"  hash", fmt.Sprintf("%d (etcdctl endpoint hashkv --rev %d)", f.HashKV, f.Revision)},
		{"  schema", version},
	})
	if d := v.Drill; d != nil {
		fmt.Fprintf(w, "ok: etcd started from it in %.1f s and has the same keys, revision and hash; it was stopped and removed\n", float64(d.Serving)/1000)
	}
}

// scratchCommand is this program as the process that a drill runs.
func scratchCommand() *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return exec.Command(path, "snapshot", "scratch")
}

func newSnapshotScratchCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "scratch",
		Short:  "The etcd of 'snapshot verify --drill', in a process of its own",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return snapshots.Scratch(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
}
