package k3s_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestServer is what one server does that has all roles.
func TestServer(t *testing.T) {
	f := quick(t, 1, false, "K3S_DOUBLE_STALL=2s")
	h := f.Hosts[0]

	f.step("etcd is as K3s sets it, but for etcd-arg", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(h.Datastore(), "config"))
		if err != nil {
			t.Fatal(err)
		}
		var c map[string]any
		if err := yaml.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]any{
			"heartbeat-interval": 100.0, "election-timeout": 1000.0, "snapshot-count": 10000.0,
			"listen-peer-urls": "https://" + h.Address.String() + ":2380", "listen-metrics-urls": "http://" + h.Address.String() + ":2381",
		} {
			if c[key] != want {
				t.Errorf("%s is %v, want %v", key, c[key], want)
			}
		}
		resp, err := http.Get("http://" + h.Address.String() + ":2381/health")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})

	f.step("the last voter is not removed", func(t *testing.T) {
		f.annotate(t, "h1", map[string]any{askRemove: "true"})
		f.WaitLog(h, "last voting member")
		f.until(t, "nothing is told", "h1", func(n *core.Node) bool {
			_, removed := n.Annotations[saysRemoved]
			return !removed && n.Annotations[saysName] == f.member(t, "h1")
		})
		f.untilMembers(t, "h1", "h1")
		f.annotate(t, "h1", map[string]any{askRemove: nil})
	})

	f.step("a learner without progress is removed", func(t *testing.T) {
		cl, err := f.Etcd(h)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		added, err := cl.MemberAddAsLearner(t.Context(), []string{"https://127.9.9.9:2380"})
		if err != nil {
			t.Fatal(err)
		}
		f.Wait("its progress is kept", func(ctx context.Context) error {
			got, err := cl.Get(ctx, "k3s/etcd/learnerProgress")
			if err == nil && (len(got.Kvs) != 1 || !strings.Contains(string(got.Kvs[0].Value), fmt.Sprint(added.Member.ID))) {
				err = fmt.Errorf("%v", got.Kvs)
			}
			return err
		})
		f.untilMembers(t, "h1", "h1")
	})

	f.step("a start disarms all alarms, and the datastore wins over server", func(t *testing.T) {
		cl, err := f.Etcd(h)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if _, err := pb.NewMaintenanceClient(cl.ActiveConnection()).Alarm(t.Context(), &pb.AlarmRequest{
			Action: pb.AlarmRequest_ACTIVATE, MemberID: 4711, Alarm: pb.AlarmType_NOSPACE,
		}); err != nil {
			t.Fatal(err)
		}
		before := f.member(t, "h1")
		f.Stop(h)
		if c := h.ExitCode(); c != 0 {
			t.Errorf("it ended with %d", c)
		}
		f.Configure(h, "server: https://127.9.9.9:6443\n")
		f.Start(h)
		f.WaitVoting(h)
		f.WaitLog(h, "alarms disarmed")
		f.WaitAPI()
		alarms, err := cl.AlarmList(t.Context())
		if err != nil || len(alarms.Alarms) != 0 {
			t.Errorf("%v (%v)", alarms, err)
		}
		if now := f.member(t, "h1"); now != before {
			t.Errorf("%s was %s before", now, before)
		}
	})

	f.step("an agent is a Node without roles", func(t *testing.T) {
		a := f.Add("a1")
		a.Command = "agent"
		f.Start(a)
		f.until(t, "it is there", "a1", func(n *core.Node) bool {
			return n.Labels[labelETCD] == "" && n.Annotations[saysName] == "" && voter(n).Reason == ""
		})
		f.Stop(a)
		if c := a.ExitCode(); c != 0 {
			t.Errorf("it ended with %d", c)
		}
	})

	f.step("a Node whose host lost its password is rejected", func(t *testing.T) {
		if !f.Double {
			t.Skip("SKIPPED: hosts on one machine share K3s's /etc/rancher/node")
		}
		a := f.Host("a1")
		kept, err := os.ReadFile(a.NodePassword())
		must(t, err)
		must(t, os.Remove(a.NodePassword()))
		// Its Node goes, so that only one who registers makes it again.
		gone := func(ctx context.Context) error {
			if _, err := f.Node(ctx, "a1"); err == nil || !strings.Contains(err.Error(), "not found") {
				return errStill
			}
			return nil
		}
		f.Wait("its Node is deleted", func(ctx context.Context) error { return f.DeleteNode(ctx, "a1") })
		f.Wait("it is gone", gone)
		f.Start(a)
		f.WaitLog(a, "Node password rejected")
		if err := gone(t.Context()); err != nil {
			t.Errorf("rejected, and it has a Node: %v", err)
		}
		f.Stop(a)
		must(t, os.WriteFile(a.NodePassword(), kept, 0o600))
		f.Start(a)
		f.until(t, "it is registered again", "a1", func(*core.Node) bool { return true })
		f.Stop(a)
	})

	f.step("no API server outlives its server", func(t *testing.T) {
		if err := h.Kill(); err != nil {
			t.Fatal(err)
		}
		f.Wait("nobody listens", func(context.Context) error {
			conn, err := net.DialTimeout("tcp", h.Address.String()+":6444", time.Second)
			if err == nil {
				conn.Close()
				return errStill
			}
			return nil
		})
	})
}
