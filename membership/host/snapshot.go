package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"suffrage/fitness"
	"suffrage/membership"
)

const (
	// recordSuffix is of the file beside a snapshot that says which operation it
	// was saved for, and what was verified of it.
	recordSuffix = ".operation"
	// MaxSnapshots is how many of these are told.
	MaxSnapshots = 16
)

// snapshot saves one for the operation, unless there is one.
func (s *Server) snapshot(ctx context.Context, o Order) error {
	have, err := Snapshots(s.o.Snapshots)
	if err != nil {
		return failure(membership.SnapshotFailed, "%w", err)
	}
	if slices.ContainsFunc(have, func(f fitness.SnapshotFacts) bool { return f.Operation == o.Operation }) {
		return nil
	}
	s.files.at("save", "snapshot")
	got, err := s.o.Save(ctx)
	if err != nil {
		return failure(membership.SnapshotFailed, "%w", err)
	}
	got.Operation = o.Operation
	d := files{path: filepath.Dir(got.File), point: s.files.point}
	if err := d.write(filepath.Base(got.File)+recordSuffix, got); err != nil {
		return failure(membership.SnapshotFailed, "%w", err)
	}
	return tidy(d.path)
}

// tidy removes the records of snapshots that were pruned.
func tidy(dir string) error {
	names, err := records(dir)
	for _, n := range names {
		file := filepath.Join(dir, strings.TrimSuffix(n, recordSuffix))
		if _, gone := os.Lstat(file); errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, n)))
		}
	}
	return err
}

// Snapshots gives those that were saved for operations and are still there in
// the size that was verified, the newest first, at most MaxSnapshots. A record
// that cannot be read is none.
func Snapshots(dir string) ([]fitness.SnapshotFacts, error) {
	names, err := records(dir)
	if err != nil {
		return nil, err
	}
	var out []fitness.SnapshotFacts
	for _, n := range names {
		var f fitness.SnapshotFacts
		if _, err := (files{path: dir}).read(n, &f); err != nil || f.Operation == "" {
			continue
		}
		file := filepath.Join(dir, strings.TrimSuffix(n, recordSuffix))
		if info, err := os.Stat(file); err != nil || info.Size() != f.Size {
			continue
		}
		f.File = file // the directory may have been moved
		if out = append(out, f); len(out) == MaxSnapshots {
			break
		}
	}
	return out, nil
}

// Held names the snapshots in a directory that were saved for one of the
// operations, as snapshots.Routine.Held has to: they must not be pruned while
// these are open.
func Held(dir string, open ...string) ([]string, error) {
	all, err := Snapshots(dir)
	if err != nil {
		return nil, err
	}
	var held []string
	for _, f := range all {
		if slices.Contains(open, f.Operation) {
			held = append(held, f.File)
		}
	}
	return held, nil
}

// records are the names of the records in a directory, the newest first: names
// begin with the time.
func records(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("host: list snapshots: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), recordSuffix) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(b, a) })
	return names, nil
}
