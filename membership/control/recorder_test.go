package control

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"suffrage/membership"
)

func TestRecorderKeepsTheNewestAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, []byte("the owner's"), 0o600); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(dir, unfinished+"123")
	if err := os.WriteFile(killed, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Recorder{Dir: dir, MaxFiles: 3, MaxBytes: 1 << 20}
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 10 {
		at := base.Add(time.Duration(i) * time.Second)
		if err := r.Keep(membership.Inputs{Version: membership.InputsVersion, Now: at}, membership.Decision{Kind: membership.Steady, At: at}); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if len(files) != 3 {
		t.Fatalf("%d files, want 3: %v", len(files), files)
	}
	for i, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		in, err := membership.ReadInputs(data)
		if err != nil {
			t.Fatal(err)
		}
		if want := base.Add(time.Duration(7+i) * time.Second); !in.Now.Equal(want) {
			t.Errorf("file %d is of %s, want %s: the oldest go first", i, in.Now, want)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a file that is not the recorder's is gone: %v", err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("what a killed controller left half written is still there")
	}
	// A bound in bytes that not even one file fits still keeps the newest.
	r.MaxBytes = 10
	at := base.Add(time.Hour)
	if err := r.Keep(membership.Inputs{Version: membership.InputsVersion, Now: at}, membership.Decision{Kind: membership.Steady, At: at}); err != nil {
		t.Fatal(err)
	}
	if files, _ = filepath.Glob(filepath.Join(dir, "*"+suffix)); len(files) != 1 {
		t.Errorf("%d files under a bound of 10 bytes, want the newest one", len(files))
	}
}

func TestRecorderOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("cannot mount a small filesystem (%v): the full disk is NOT tested here, run as root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r := &Recorder{Dir: dir, MaxFiles: 200, MaxBytes: 256 << 20}
	in := membership.Inputs{Version: membership.InputsVersion, View: membership.View{Error: strings.Repeat("x", 64<<10)}}
	err := r.Keep(in, membership.Decision{Kind: membership.Refused})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "free space") {
		t.Errorf("%v, want the directory and the next step", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left: part of a record is none", left)
	}
}
