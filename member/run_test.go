package member_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"suffrage/member"
	"suffrage/member/membertest"
)

func TestMain(m *testing.M) {
	membertest.Main()
	goleak.VerifyTestMain(m)
}

// One member over its whole life, with TLS.
func TestLife(t *testing.T) {
	m := membertest.New(t, membertest.Options{Size: 1, TLS: true}).Members[0]
	page := get(t, m.Config.Metrics+"/metrics")
	for _, want := range []string{
		"suffrage_member_election_timeout_seconds 1\n", // limits are derived from it, and etcd does not tell it
		"suffrage_member_heartbeat_seconds 0.1\n",
		"etcd_disk_wal_fsync_duration_seconds_bucket",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics page lacks %q", want)
		}
	}
	m.Signal(syscall.SIGTERM)
	if log, err := m.Wait(); err != nil {
		t.Fatalf("being told to stop is no failure: %v\n%s", err, log)
	}
	err := member.Create(m.Config.DataDir, m.Name, m.Config.InitialCluster, "another")
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second cluster over a datastore: %v", err)
	}
	m.Start(false, false)
	m.WaitServing()
}

// A member whose fellows never come must still stop when told to: etcd's own
// Close waits for ever there.
func TestStopsBeforeItEverJoined(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	m := c.Another()
	m.Config.InitialCluster = map[string]string{m.Name: m.Config.AdvertisePeer, "away": "http://127.0.0.1:1"}
	m.Start(true, false)
	waitFor(t, "an open peer port", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(m.Config.ListenPeer, "http://"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	m.Signal(syscall.SIGTERM)
	if log, err := m.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
}

// The process of a removed member ends with the reason, and ends again when it
// is started on its old data (etcd.md 8, 24, 29).
func TestRemovedMemberSaysSo(t *testing.T) {
	c := membertest.New(t, membertest.Options{})
	cl, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints()[:1], Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
	defer cancel()
	list, err := cl.MemberList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gone := c.Members[2]
	waitFor(t, "the removal", func() bool {
		for _, m := range list.Members {
			if m.Name == gone.Name {
				// "unhealthy cluster" until connections are 5 s old (etcd.md 28).
				_, err := cl.MemberRemove(ctx, m.ID)
				// Not there: the answer before went with it.
				return err == nil || errors.Is(err, rpctypes.ErrMemberNotFound)
			}
		}
		return false
	})
	for range 2 {
		log, err := gone.Wait()
		if err == nil || !strings.Contains(log, "is gone for good") {
			t.Errorf("a removed member ended with %v and this log:\n%s", err, log)
		}
		gone.Start(false, false)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(membertest.Patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("no %s", what)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	c := http.Client{Timeout: membertest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustWrite(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
