package probes_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"suffrage/probes"
)

// disk is either of the two disk probes.
type disk interface {
	Run() (time.Duration, error)
	Close() error
}

func disks(dir string) map[string]disk {
	return map[string]disk{"wal": probes.NewWAL(dir), "commit": probes.NewCommit(dir)}
}

func TestDiskProbesMeasureAndStaySmall(t *testing.T) {
	dir := t.TempDir()
	for name, d := range disks(dir) {
		for i := range 1100 { // more than two rounds of the WAL's file
			if took, err := d.Run(); err != nil || took <= 0 {
				t.Fatalf("%s run %d: %v, %v", name, i, took, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if took, err := d.Run(); err != nil || took <= 0 {
			t.Errorf("%s after Close: %v, %v, want it to open again", name, took, err)
		}
		d.Close()
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v, want two files", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Size() > 1<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v, want at most 1 MiB, mode 0600", f.Name(), info, err)
		}
	}
}

func TestDiskProbesSayWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for name, d := range disks(missing) {
		_, err := d.Run()
		if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "create the directory") {
			t.Errorf("%s in a missing directory: %v", name, err)
		}
		if err := os.Mkdir(missing, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		if _, err := d.Run(); err != nil {
			t.Errorf("%s once the directory is there: %v", name, err)
		}
		d.Close()
		os.RemoveAll(missing)
	}
	for name, d := range disks(file) {
		if _, err := d.Run(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s below a file: %v", name, err)
		}
	}
}

func TestCommitOverGarbage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "commit.probe")
	for _, garbage := range []string{"x", strings.Repeat("nonsense", 4096)} {
		if err := os.WriteFile(path, []byte(garbage), 0o600); err != nil {
			t.Fatal(err)
		}
		c := probes.NewCommit(dir)
		if _, err := c.Run(); err != nil {
			t.Errorf("over half a file, which a full disk leaves: %v", err)
		}
		c.Close()
	}
}

// TestCommitOnADyingDisk makes the memory map fault, as a bad sector does.
func TestCommitOnADyingDisk(t *testing.T) {
	dir := t.TempDir()
	c := probes.NewCommit(dir)
	if _, err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "commit.probe"), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Run(); err == nil || !strings.Contains(err.Error(), "kernel's log") {
			t.Errorf("%v, want an error and no crash", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestTwoAgentsInOneDirectory(t *testing.T) {
	dir := t.TempDir()
	a, b := probes.NewCommit(dir), probes.NewCommit(dir)
	if _, err := a.Run(); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := b.Run(); err == nil || !strings.Contains(err.Error(), "a directory of its own") {
		t.Errorf("%v, want the next step", err)
	}
}

// TestFileSizeLimit stands in for a full disk where no filesystem may be
// mounted: the same calls fail, with another number. The limit is a process's,
// so it runs in one of its own.
func TestFileSizeLimit(t *testing.T) {
	if os.Getenv("PROBES_FILE_SIZE_LIMIT") == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(self, "-test.run=^TestFileSizeLimit$")
		c.Env = append(os.Environ(), "PROBES_FILE_SIZE_LIMIT=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	dir := t.TempDir()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}); err != nil {
		t.Fatal(err)
	}
	for name, d := range disks(dir) {
		for range 2 { // the second time over what the first has left
			if _, err := d.Run(); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "LimitFSIZE") {
				t.Errorf("%s: %v, want file too large and the next step", name, err)
			}
		}
	}
}

// small mounts a filesystem of some KiB, which only root may.
func small(t *testing.T, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "size=16k"); err != nil {
		t.Skipf("cannot mount a small filesystem (%v): the full disk is NOT tested here, run as root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	dir := small(t, 0)
	for name, d := range disks(dir) {
		d.Run() // the second run goes over what the first has left
		if _, err := d.Run(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want the path and the next step", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "boot_id"), make([]byte, 16<<10), 0o600); err == nil {
		if _, err := probes.NewStability("/", dir).Sample(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("stability: %v, want it to fail and not to guess", err)
		}
	}
}

func TestReadOnlyDisk(t *testing.T) {
	dir := small(t, unix.MS_RDONLY)
	for name, d := range disks(dir) {
		if _, err := d.Run(); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "kernel's log") {
			t.Errorf("%s: %v, want the next step", name, err)
		}
	}
}

func TestReadFilesystem(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "data", "deep")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, "data"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, `proc/self/mountinfo = 21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n`+
		`22 21 0:5 / `+real+` rw - tmpfs covered rw\n`+
		`22 21 0:5 / `+real+` rw shared:2 master:1 - btrfs /dev/with\\040blank rw,subvol=/x\n`+
		`22 21 0:5 / `+real+`/de rw - xfs /dev/other rw\nnonsense\n`)
	fs, err := probes.ReadFilesystem(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fs.String(), `btrfs on /dev/with\ blank`; got != strings.ReplaceAll(want, `\ `, " ") && got != want {
		t.Errorf("%q, want the last mount on the longest path", got)
	}
	if fs.Free <= 0 {
		t.Errorf("%d bytes free", fs.Free)
	}
	if fs, err := probes.ReadFilesystem("/", dir); err != nil || fs.Type == "" || fs.Device == "" {
		t.Errorf("on this machine: %+v, %v", fs, err)
	}
	if _, err := probes.ReadFilesystem("/", filepath.Join(root, "none")); err == nil || !strings.Contains(err.Error(), "create the directory") {
		t.Errorf("%v, want the next step", err)
	}
}

func BenchmarkDisk(b *testing.B) {
	for name, d := range disks(b.TempDir()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
		d.Close()
	}
}
