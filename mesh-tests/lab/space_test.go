package lab

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What there is stays writable on a full one, and nothing more fits in.
func TestSpace(t *testing.T) {
	Need(t)
	at := t.TempDir()
	s, err := MountSpace(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	there := filepath.Join(at, "there")
	if err := os.WriteFile(there, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Fill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "more"), []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("one more file: %v", err)
	}
	f, err := os.OpenFile(there, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("y"), 0); err != nil {
		t.Errorf("what there is cannot be written over: %v", err)
	}
	if err := s.Free(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("y"), 1<<16); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
