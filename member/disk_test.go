package member_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"suffrage/member"
	"suffrage/member/membertest"
)

// small mounts a filesystem of that many KiB over a new directory.
func small(t *testing.T, kib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kib)); err != nil {
		t.Skipf("cannot mount a small filesystem (%v): the full disk is NOT tested here, run as root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// endedForSpace waits for the end and wants words instead of a stack: exit code
// 1, what happened, and what to do.
func endedForSpace(t *testing.T, m *membertest.Member) {
	t.Helper()
	log, err := m.Wait()
	end, ok := err.(*exec.ExitError)
	if !ok || end.ExitCode() != 1 || !strings.Contains(log, "no space left on device") || !strings.Contains(log, "free space and start it again") || strings.Contains(log, "goroutine ") {
		t.Fatalf("%v\n%s", err, log)
	}
}

func TestNoRoomToBegin(t *testing.T) {
	m := membertest.New(t, membertest.Options{Size: 1}).Another()
	m.Config.DataDir = filepath.Join(small(t, 300), "etcd")
	m.Config.InitialCluster = map[string]string{m.Name: m.Config.AdvertisePeer}
	if err := member.Create(m.Config.DataDir, m.Name, m.Config.InitialCluster, "suffrage"); err == nil {
		t.Error("created where there is no room")
	}
	if left, _ := os.ReadDir(filepath.Dir(m.Config.DataDir)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The disk fills while it serves: it ends, and once there is room again
// everything that it acknowledged is there.
func TestDiskFillsUp(t *testing.T) {
	m := membertest.New(t, membertest.Options{Size: 1}).Another()
	dir := small(t, 140<<10)
	m.Config.DataDir = filepath.Join(dir, "etcd")
	m.Config.InitialCluster = map[string]string{m.Name: m.Config.AdvertisePeer}
	m.Start(true, false)
	m.WaitServing()
	cl, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Config.AdvertiseClient}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	f.Close()
	written, value := 0, strings.Repeat("x", 4096)
	for ; written < 10000; written++ {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := cl.Put(ctx, "k"+strconv.Itoa(written), value)
		cancel()
		if err != nil {
			break
		}
	}
	endedForSpace(t, m)
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	m.Start(false, false)
	m.WaitServing()
	ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
	defer cancel()
	for i := range written {
		r, err := cl.Get(ctx, "k"+strconv.Itoa(i))
		if err != nil || len(r.Kvs) != 1 || string(r.Kvs[0].Value) != value {
			t.Fatalf("key %d of %d that were acknowledged: %v, %v", i, written, r, err)
		}
	}
}
