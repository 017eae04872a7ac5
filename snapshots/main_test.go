package snapshots

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"suffrage/fitness"
	"suffrage/member/membertest"
	"suffrage/membership/etcd"
)

// The test binary is also the processes that tests kill or limit.
const (
	roleVariable = "SUFFRAGE_SNAPSHOTS_TEST"
	roleScratch  = "scratch"
	roleSave     = "save" // saves, stops after the first bytes, and waits to be killed
	roleLimited  = "limited"
	roleDrill    = "drill" // drills a file until it is killed
)

func TestMain(m *testing.M) {
	membertest.Main()
	role, rest, _ := strings.Cut(os.Getenv(roleVariable), " ")
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	switch role {
	case roleScratch:
		err = Scratch(ctx, os.Stdin, os.Stdout)
	case roleDrill:
		_, err = Drill(ctx, rest, func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleVariable+"="+roleScratch)
			return cmd
		})
	case roleSave, roleLimited:
		var src Source
		var dir, endpoint string
		if _, err := fmt.Sscan(rest, &src.Host, &src.Member, &endpoint, &dir); err != nil {
			panic(err)
		}
		src.Etcd = etcd.DefaultConfig()
		src.Etcd.Endpoints = []string{endpoint}
		_, err = Save(ctx, src, dir, func(Progress) {
			if role == roleSave {
				fmt.Println("half way")
				select {}
			}
			limit := syscall.Rlimit{Cur: 2 << 20, Max: 2 << 20}
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				panic(err)
			}
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func self(t testing.TB, role string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func scratchCommand(t testing.TB) func() *exec.Cmd {
	return func() *exec.Cmd { return self(t, roleScratch) }
}

var quiet = slog.New(slog.DiscardHandler)

// reach reaches one member of a cluster.
func reach(c *membertest.Cluster, m *membertest.Member) etcd.Config {
	e := etcd.DefaultConfig()
	e.Timeout = fitness.Duration(20 * time.Second) // of a busy machine
	e.Endpoints = []string{m.Config.AdvertiseClient}
	e.CA, e.Cert, e.Key = c.CA, c.Cert, c.Key
	return e
}

func client(t testing.TB, c *membertest.Cluster, m *membertest.Member) *clientv3.Client {
	t.Helper()
	cl, err := reach(c, m).Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

// source is a member as the source of a snapshot.
func source(t testing.TB, c *membertest.Cluster, m *membertest.Member) Source {
	t.Helper()
	cfg := reach(c, m)
	s, err := client(t, c, m).Status(t.Context(), cfg.Endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	return Source{Host: m.Name, Member: etcd.ID(s.Header.MemberId), Etcd: cfg}
}

// fill writes n keys of 64 KiB: enough that a transfer has a middle.
func fill(t testing.TB, cl *clientv3.Client, n int) {
	t.Helper()
	value := strings.Repeat("x", 64<<10)
	for i := range n {
		if _, err := cl.Put(t.Context(), fmt.Sprintf("fill/%04d", i), value); err != nil {
			t.Fatal(err)
		}
	}
}

func ls(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// hashed appends the hash as etcd does.
func hashed(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func failing() *exec.Cmd { return exec.Command("sh", "-c", "echo out of luck >&2; exit 3") }
func hanging() *exec.Cmd { return exec.Command("sleep", "600") }
