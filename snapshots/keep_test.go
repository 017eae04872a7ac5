package snapshots

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)

func TestKeep(t *testing.T) {
	file := func(hours int, state string) File {
		n := Name{Time: noon.Add(time.Duration(hours) * time.Hour), Host: "h1", Revision: int64(100 + hours)}
		return File{Path: "/s/" + n.String(), Time: n.Time, State: state}
	}
	held := file(0, StateSaved)
	all := []File{
		file(5, StateSaved), file(4, StateVerified), file(3, StateBad), file(2, StateForeign),
		file(1, StateSaved), held, file(-1, StateSaved), file(-2, StateSaved),
	}
	for _, tt := range []struct {
		name string
		n    int
		held []string
		want []int // hours of those removed
	}{
		{"room for all", 8, nil, nil},
		{"the oldest go", 4, nil, []int{-1, -2}},                                  // 5, 4, 1, 0 stay; bad and foreign do not count
		{"held by name", 3, []string{held.Name()}, []int{-1, -2}},                 // and does not count
		{"held by path", 1, []string{held.Path}, []int{4, 1, -1, -2}},             // the newest and the held one stay
		{"held but gone", 1, []string{"x.db"}, []int{4, 1, 0, -1, -2}},            // says nothing of the others
		{"nothing to keep", 0, []string{held.Path}, []int{5, 4, 1, -1, -2}},       // Prune does not allow it
		{"held several", 1, []string{all[7].Path, all[6].Name()}, []int{4, 1, 0}}, // two operations
	} {
		for range 5 { // the order of the input is nothing
			shuffled := append([]File(nil), all...)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			var got []int
			for _, f := range Keep(shuffled, tt.n, tt.held) {
				got = append(got, int(f.Time.Sub(noon).Hours()))
			}
			if !equal(got, tt.want) {
				t.Errorf("%s: removed %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestPruneAndList(t *testing.T) {
	dir := t.TempDir()
	whole := make([]byte, minSize)
	var names []string
	for h := range 8 {
		n := Name{noon.Add(time.Duration(h) * time.Hour), "h1", int64(h + 1)}.String()
		write(t, dir, n, whole)
		names = append(names, n)
	}
	write(t, dir, "by-hand.db", whole)
	write(t, dir, Name{noon.Add(99 * time.Hour), "h1", 99}.String(), whole[:100]) // newest, and cut off
	write(t, dir, "20260806T110000Z_h1_.partial", nil)
	write(t, dir, "notes.txt", nil)
	write(t, dir, "somebody.partial", nil)
	if err := os.Mkdir(filepath.Join(dir, "sub.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	removed, err := Prune(dir, 5, []string{names[0]})
	if err != nil || len(removed) != 2 || removed[0].Name() != names[2] || removed[1].Name() != names[1] {
		t.Errorf("removed %v, %v; want the two oldest that are not held", removed, err)
	}
	files, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]int{}
	for i, f := range files {
		states[f.State]++
		if i > 0 && f.Time.After(files[i-1].Time) {
			t.Errorf("%s is newer than the one before it", f.Name())
		}
	}
	if states[StateSaved] != 6 || states[StateForeign] != 1 || states[StateBad] != 1 || !strings.Contains(files[0].Problem+files[1].Problem, "100 bytes") {
		t.Errorf("listed %v: %+v", states, files)
	}
	if left := strings.Join(ls(t, dir), " "); strings.Contains(left, "_.partial") || !strings.Contains(left, "somebody.partial") || !strings.Contains(left, "notes.txt") {
		t.Errorf("left: %s; only our own partial files may go", left)
	}
	if _, err := Prune(dir, 0, nil); err == nil {
		t.Error("pruned to nothing")
	}
	if files, err := List(filepath.Join(dir, "none")); err != nil || files != nil {
		t.Errorf("no directory: %v %v", files, err)
	}
}
