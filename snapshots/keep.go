package snapshots

import (
	"fmt"
	"os"
	"slices"
)

// Keep says which files may be removed so that the newest n remain. Three kinds
// are neither removed nor counted: those named in held (by file name or path:
// the snapshot of an operation that is open or wants it kept), foreign ones,
// and bad ones, which a person should see. files may be in any order.
func Keep(files []File, n int, held []string) (remove []File) {
	newest := slices.Clone(files)
	slices.SortStableFunc(newest, func(a, b File) int { return b.Time.Compare(a.Time) })
	for _, f := range newest {
		switch {
		case f.State == StateForeign || f.State == StateBad:
		case slices.Contains(held, f.Path) || slices.Contains(held, f.Name()):
		case n > 0:
			n--
		default:
			remove = append(remove, f)
		}
	}
	return remove
}

// Prune removes what Keep says, and gives what it removed. n is at least 1: the
// last good snapshot is never removed.
func Prune(dir string, n int, held []string) (removed []File, err error) {
	if n < 1 {
		return nil, fmt.Errorf("snapshots: prune %s: keep %d: at least 1", dir, n)
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	files, err := list(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range Keep(files, n, held) {
		if err := os.Remove(f.Path); err != nil {
			return removed, fmt.Errorf("snapshots: prune: %w", err)
		}
		removed = append(removed, f)
	}
	return removed, nil
}
