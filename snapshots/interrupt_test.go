package snapshots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"suffrage/member/membertest"
)

// Whatever ends a save half way, nothing in the directory looks like a
// snapshot, and the next save works. One member of 8 MB serves all of these.
func TestInterrupted(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	m := c.Members[0]
	fill(t, client(t, c, m), 128)
	src := source(t, c, m)

	t.Run("killed", func(t *testing.T) { killed(t, src) })
	t.Run("file size limit", func(t *testing.T) { limited(t, src) })
	t.Run("disk full", func(t *testing.T) { diskFull(t, src) })
	t.Run("read-only", func(t *testing.T) { readOnly(t, src) })
	t.Run("cancelled", func(t *testing.T) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Save(ctx, src, dir, func(Progress) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		nothing(t, dir)
	})
	t.Run("second save at once", func(t *testing.T) {
		dir := t.TempDir()
		var second, prune error
		var during []File
		_, err := Save(t.Context(), src, dir, func(Progress) {
			if second == nil {
				_, second = Save(t.Context(), src, dir, nil)
				_, prune = Prune(dir, 5, nil)
				during, _ = List(dir)
			}
		})
		if err != nil || !errors.Is(second, ErrBusy) || !errors.Is(prune, ErrBusy) || len(during) != 0 {
			t.Errorf("first %v, second %v, prune %v, listed meanwhile %v", err, second, prune, during)
		}
		if files, err := List(dir); err != nil || len(files) != 1 {
			t.Errorf("listed after: %v %v", files, err)
		}
	})
	t.Run("frozen voter", func(t *testing.T) {
		dir := t.TempDir()
		s := saver{stall: 300 * time.Millisecond, tell: func(p Progress) {
			if p.Bytes < p.Total {
				m.Signal(syscall.SIGSTOP)
			}
		}}
		_, err := s.save(t.Context(), src, dir)
		m.Signal(syscall.SIGCONT)
		if !errors.Is(err, errStalled) {
			t.Errorf("got %v", err)
		}
		nothing(t, dir)
	})
	t.Run("voter dies", func(t *testing.T) { // the last: it does not come back
		dir := t.TempDir()
		_, err := Save(t.Context(), src, dir, func(p Progress) {
			m.Signal(syscall.SIGKILL)
			_, _ = m.Wait()
		})
		if err == nil || !strings.Contains(err.Error(), "save from h1: after ") {
			t.Errorf("got %v", err)
		}
		nothing(t, dir)
	})
}

func nothing(t *testing.T, dir string) {
	t.Helper()
	if left := ls(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// works saves into a directory where a save ended badly.
func works(t *testing.T, src Source, dir string) {
	t.Helper()
	s, err := Save(t.Context(), src, dir, nil)
	if err != nil {
		t.Fatalf("the next save: %v", err)
	}
	if left := ls(t, dir); len(left) != 1 || left[0] != filepath.Base(s.Path) {
		t.Errorf("after the next save: %v", left)
	}
}

func killed(t *testing.T, src Source) {
	dir := t.TempDir()
	cmd := self(t, fmt.Sprintf("%s %s %s %s %s", roleSave, src.Host, src.Member, src.Etcd.Endpoints[0], dir))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "half way\n" {
		t.Fatal(line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	left := ls(t, dir)
	if len(left) != 1 || !strings.HasSuffix(left[0], partial) {
		t.Fatalf("after the kill: %v; one partial file is expected", left)
	}
	write(t, dir, left[0], []byte("as it was")) // still there for the next save
	works(t, src, dir)
	write(t, dir, left[0], []byte("as it was"))
	if files, err := List(dir); err != nil || len(files) != 1 || len(ls(t, dir)) != 1 {
		t.Errorf("list: %v %v; directory: %v", files, err, ls(t, dir))
	}
}

// limited is a full disk as any user can have it: no file may be longer than 2 MiB.
func limited(t *testing.T, src Source) {
	dir := t.TempDir()
	out, err := self(t, fmt.Sprintf("%s %s %s %s %s", roleLimited, src.Host, src.Member, src.Etcd.Endpoints[0], dir)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "file too large") || !strings.Contains(string(out), partial) {
		t.Errorf("got %v: %s", err, out)
	}
	nothing(t, dir)
	works(t, src, dir)
}

// mount gives a filesystem of its own, or skips.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("suffrage-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("SKIPPED, needs root: mount a filesystem to fill: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func diskFull(t *testing.T, src Source) {
	dir := mount(t, "size=32m")
	filler := filepath.Join(dir, "filler")
	size := func(n int64) {
		t.Helper()
		have, err := free(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filler, make([]byte, have-n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	size(1 << 20)
	_, err := Save(t.Context(), src, dir, nil)
	if !errors.Is(err, ErrDiskSpace) || !strings.Contains(err.Error(), "1.0 MiB free, the database of h1 needs ") {
		t.Errorf("with 1 MiB free: %v", err)
	}
	// The space goes while the save runs.
	os.Remove(filler)
	first := true
	_, err = Save(t.Context(), src, dir, func(Progress) {
		if first {
			size(1 << 20)
		}
		first = false
	})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("filled meanwhile: %v", err)
	}
	os.Remove(filler)
	nothing(t, dir)
	works(t, src, dir)
}

func readOnly(t *testing.T, src Source) {
	dir := t.TempDir()
	if os.Getuid() == 0 {
		dir = mount(t, "size=32m") // root may write where the mode forbids it
	}
	works(t, src, dir)
	if os.Getuid() == 0 {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
	} else {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(dir, 0o700)
	}
	_, err := Save(t.Context(), src, dir, nil)
	if err == nil || !strings.Contains(err.Error(), dir) || !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.EACCES) {
		t.Errorf("save: %v", err)
	}
	// What is there can still be listed and verified.
	files, err := List(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("list: %v %v", files, err)
	}
	if f, err := files[0].Check(t.Context()); err != nil || f.State != StateVerified {
		t.Errorf("check: %+v %v", f, err)
	}
}

// One changed or missing byte anywhere is found.
func TestDamaged(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	cl := client(t, c, c.Members[0])
	history(t, cl)
	dir := t.TempDir()
	s, err := Save(t.Context(), source(t, c, c.Members[0]), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	offsets := []int{0, 16, 4096, len(good) - 33, len(good) - 32, len(good) - 1}
	for range 40 {
		offsets = append(offsets, rand.IntN(len(good)))
	}
	for _, at := range offsets {
		b := append([]byte(nil), good...)
		b[at] ^= 1 << rand.IntN(8)
		if _, err := Verify(t.Context(), write(t, dir, "x.db", b)); !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), "x.db: its content has the SHA-256") {
			t.Errorf("flipped a bit of byte %d: %v", at, err)
		}
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "it has 0 bytes, a snapshot has at least"},
		{"one byte short", good[:len(good)-1], "not whole pages and a SHA-256"},
		{"without its hash", good[:len(good)-32], "was copied out of a data directory"},
		{"one page short", append(append([]byte(nil), good[:len(good)-32-4096]...), good[len(good)-32:]...), "SHA-256"},
		{"half", good[:(len(good)-32)/2], "it is cut off"},
		{"not a database", hashed(make([]byte, 64<<10)), "does not open as a database"},
	} {
		_, err := Verify(t.Context(), write(t, dir, "x.db", tt.data))
		if !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "x.db") {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := Verify(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Verify(t.Context(), dir); !errors.Is(err, ErrBad) {
		t.Errorf("a directory: %v", err)
	}
	// Damaged before etcd took the hash: pages that make no sense.
	noticed := 0
	for page := 2; page < (len(good)-32)/4096; page++ {
		b := append([]byte(nil), good[:len(good)-32]...)
		for i := range 512 {
			b[page*4096+i] ^= 0x5a
		}
		_, err := Verify(t.Context(), write(t, dir, "x.db", hashed(b)))
		if errors.Is(err, ErrBad) {
			noticed++
		} else if err != nil {
			t.Errorf("page %d overwritten: %v", page, err)
		}
	}
	if noticed == 0 { // free pages may hold anything
		t.Error("no overwritten page was noticed")
	}
	// A name that says more than the file holds.
	renamed := write(t, dir, Name{s.Time, s.Host, s.Revision + 1}.String(), good)
	files, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path != renamed {
			continue
		}
		if f, err = f.Check(t.Context()); f.State != StateBad || !strings.Contains(f.Problem, "it was renamed") {
			t.Errorf("renamed: %+v %v", f, err)
		}
	}
	// The drill says what is wrong and leaves nothing, with a file that is not
	// whole and with a process that does not do its part.
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if _, err := Drill(t.Context(), write(t, dir, "x.db", good[:8192]), scratchCommand(t)); !errors.Is(err, ErrBad) {
		t.Errorf("drill of a cut-off file: %v", err)
	}
	if _, err := Drill(t.Context(), s.Path, failing); !errors.Is(err, ErrDrill) {
		t.Errorf("drill with a failing process: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Drill(ctx, s.Path, hanging); !errors.Is(err, ErrDrill) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drill with a process that hangs: %v", err)
	}
	nothing(t, tmp)
	drillKilled(t, s.Path, tmp)
	emptied(t, c)
}

// drillKilled kills the one who drills while etcd runs: etcd ends by itself and
// removes what it has.
func drillKilled(t *testing.T, path, tmp string) {
	cmd := self(t, roleDrill+" "+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait := func(what string, is func() bool) {
		t.Helper()
		for until := time.Now().Add(membertest.Patience); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: %v", what, ls(t, tmp))
			}
		}
	}
	wait("etcd does not come up", func() bool {
		sockets, _ := filepath.Glob(tmp + "/suffrage-drill-*/client")
		return len(sockets) > 0
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	wait("left behind", func() bool { return len(ls(t, tmp)) == 0 })
}

// emptied is a store whose newest entries compaction took: its revision is not
// the largest in the key bucket, which is what etcdutl raises.
func emptied(t *testing.T, c *membertest.Cluster) {
	cl := client(t, c, c.Members[0])
	r, err := cl.Delete(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cl.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	src := source(t, c, c.Members[0])
	s, err := Save(t.Context(), src, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Keys != 0 || s.Revision != r.Header.Revision {
		t.Errorf("emptied: %+v, want no key and revision %d", s, r.Header.Revision)
	}
	compare(t, cl, src, s.Facts)
	re, err := Restore(t.Context(), s.Path, RestoreOptions{Dir: filepath.Join(t.TempDir(), "d"), Name: "h1", Cluster: map[string]string{"h1": "http://127.0.0.1:2380"}, Bump: 3})
	if err != nil || re.Revision != s.Revision+3 {
		t.Errorf("restored %+v, %v", re, err)
	}
}
