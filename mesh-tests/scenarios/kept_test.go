package scenarios

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"suffrage/mesh-tests/lab"
)

// What a failed test leaves of a host, with a disk of its own or without.
func TestKeepFiles(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	want := []string{"h1/agent.log", "h1/data/decisions/day", "h2/" + lab.Backing + "/decisions/day", "h2/member.log"}
	for _, file := range append([]string{"h1/data/etcd/wal", "h2/" + lab.Backing + "/etcd/wal"}, want...) {
		at := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := keepFiles(dir, to); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, file := range want {
		if b, err := os.ReadFile(filepath.Join(to, file)); err != nil || string(b) != file {
			t.Errorf("%s: %v: %q", file, err, b)
		}
	}
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(to, path)
			kept = append(kept, name)
		}
		return err
	})
	if err != nil || !slices.Equal(kept, want) {
		t.Errorf("%v: kept %v, want %v", err, kept, want)
	}
}
