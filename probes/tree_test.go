package probes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant builds the tree that a .tree file under testdata describes, links kept,
// and returns its root. Its lines are "path = content" (with \n for a line end),
// "path -> target" and "path/" for an empty folder.
func plant(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		put(t, root, line)
	}
	return root
}

func put(t *testing.T, root, line string) {
	t.Helper()
	var err error
	path := func(p string) string {
		p = filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if name, target, ok := strings.Cut(line, " -> "); ok {
		err = os.Symlink(target, path(name))
	} else if name, text, ok := strings.Cut(line, " ="); ok {
		err = os.WriteFile(path(name), []byte(strings.ReplaceAll(strings.TrimPrefix(text, " "), `\n`, "\n")), 0o644)
	} else {
		err = os.MkdirAll(path(line), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
