package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// prepare puts up the fence of suffrage standby prepare.
func prepare(t *testing.T, data string) {
	t.Helper()
	p, err := Prepare(t.Context(), data, os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.PutFence(time.Now()); err != nil {
		t.Fatal(err)
	}
}

// While root prepares a host, no start is counted there, and the fence of an
// operation stays as it is.
func TestPreparing(t *testing.T) {
	data := t.TempDir()
	p, err := Prepare(t.Context(), data, os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Begin(ctx, data); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a member was started meanwhile: %v", err)
	}
	p.Close()
	if err := Begin(t.Context(), data); err != nil {
		t.Errorf("and not after it: %v", err)
	}

	if err := (files{path: data}).write(fenceFile, fence{Operation: "op", Term: 7}); err != nil {
		t.Fatal(err)
	}
	prepare(t, data)
	if err := Fenced(data); err == nil || !strings.Contains(err.Error(), "by operation op, term 7") {
		t.Errorf("the fence is %v", err)
	}
	if names, _ := filepath.Glob(filepath.Join(data, ".*")); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}

	if _, err := Prepare(t.Context(), filepath.Join(data, "none"), 0, 0); !errors.Is(err, ErrNoData) {
		t.Errorf("without a directory: %v", err)
	}
}

// Root follows nothing that the services' user has put there.
func TestPreparingFollowsNoLink(t *testing.T) {
	above := t.TempDir()
	data, precious := filepath.Join(above, "data"), filepath.Join(above, "precious")
	for _, err := range []error{os.Mkdir(data, 0o700), os.WriteFile(precious, []byte("x"), 0o600), os.Symlink("../precious", filepath.Join(data, lockFile))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if p, err := Prepare(t.Context(), data, os.Geteuid(), os.Getegid()); err == nil {
		p.Close()
		t.Error("the lock is a file elsewhere")
	}
	if got, err := os.ReadFile(precious); string(got) != "x" {
		t.Errorf("%q %v", got, err)
	}
}
