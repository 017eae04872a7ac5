package lab

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is written comes to the disk, and only fsync takes longer.
func TestDisk(t *testing.T) {
	Need(t)
	backing, at := t.TempDir(), t.TempDir()
	d, err := MountDisk(backing, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := os.Create(filepath.Join(at, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sync := func() time.Duration {
		t.Helper()
		began := time.Now()
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	const slow = 300 * time.Millisecond
	d.Slow("", slow)
	if took := sync(); took < slow {
		t.Errorf("fsync in %v", took)
	}
	until(t, "a write is not slow", func() bool {
		began := time.Now()
		_, err := f.WriteString("x")
		return err == nil && time.Since(began) < slow
	})
	d.Slow("fil", 0)
	until(t, "a file's own word counts", func() bool { return sync() < slow })
	d.Slow("", 0)
	d.Slow("fil", slow)
	if took := sync(); took < slow {
		t.Errorf("fsync in %v", took)
	}
	d.Slow("fil", 0)
	until(t, "fsync is not slow any more", func() bool { return sync() < slow })
	if err := os.Rename(filepath.Join(at, "file"), filepath.Join(at, "other")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(backing, "other")); err != nil || len(b) == 0 {
		t.Errorf("%q, %v", b, err)
	}
}
