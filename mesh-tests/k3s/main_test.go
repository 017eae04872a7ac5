package k3s_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.uber.org/goleak"
	core "k8s.io/api/core/v1"

	"suffrage/mesh-tests/k3s"
)

// What the Nodes are asked and told; k3s.md's words.
const (
	askRemove   = "etcd.k3s.cattle.io/remove"
	saysRemoved = "etcd.k3s.cattle.io/removed-node-name"
	saysName    = "etcd.k3s.cattle.io/node-name"
	saysAddress = "etcd.k3s.cattle.io/node-address"
	labelETCD   = "node-role.kubernetes.io/etcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is a fleet and a test that is about it.
type fleet struct {
	*k3s.Fleet
	t *testing.T
}

// quick is one with few API servers and short times. Learners have as long as
// anywhere, unless env says otherwise.
func quick(t *testing.T, servers int, split bool, env ...string) *fleet {
	return &fleet{k3s.New(t, k3s.Options{Servers: servers, Split: split, Env: append(env, k3s.Quick...), Config: k3s.QuickETCD}), t}
}

// step is one part of the contract.
func (f *fleet) step(name string, do func(t *testing.T)) {
	f.t.Helper()
	if !f.t.Run(name, do) {
		f.t.FailNow()
	}
}

// until waits for something about a Node.
func (f *fleet) until(t *testing.T, what, node string, is func(*core.Node) bool) {
	t.Helper()
	f.Wait(what, func(ctx context.Context) error {
		n, err := f.Node(ctx, node)
		if err == nil && !is(n) {
			err = fmt.Errorf("labels %v, annotations %v, %v", n.Labels, n.Annotations, voter(n))
		}
		return err
	})
}

func (f *fleet) annotate(t *testing.T, node string, annotations map[string]any) {
	t.Helper()
	f.Wait("annotate "+node, func(ctx context.Context) error { return f.Annotate(ctx, node, annotations) })
}

// untilMembers waits until exactly these hosts are members, as one of them sees it.
func (f *fleet) untilMembers(t *testing.T, from string, want ...string) {
	t.Helper()
	f.Wait(fmt.Sprintf("the members are %v", want), func(ctx context.Context) error {
		members, err := f.Members(ctx, f.Host(from))
		if err != nil {
			return err
		}
		at := map[string]bool{}
		for _, m := range members {
			for _, h := range f.Hosts {
				if m.PeerURLs[0] == "https://"+h.Address.String()+":2380" {
					at[h.Name] = true
				}
			}
		}
		for _, h := range want {
			if !at[h] {
				return fmt.Errorf("they are %v", members)
			}
		}
		if len(members) != len(want) {
			return fmt.Errorf("they are %v", members)
		}
		return nil
	})
}

var memberName = regexp.MustCompile(`^(.+)-[0-9a-f]{8}$`)

func (f *fleet) member(t *testing.T, host string) string {
	t.Helper()
	name, err := f.Host(host).MemberName()
	if m := memberName.FindStringSubmatch(name); err != nil || m == nil || m[1] != host {
		t.Fatalf("the member of %s is called %q (%v)", host, name, err)
	}
	return name
}

func voter(n *core.Node) core.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == "EtcdIsVoter" {
			return c
		}
	}
	return core.NodeCondition{}
}

// reason waits for the condition's, and looks that its status goes with it.
func (f *fleet) reason(t *testing.T, node, want string) {
	t.Helper()
	f.until(t, node+" is "+want, node, func(n *core.Node) bool {
		c := voter(n)
		return c.Reason == want && (c.Status == core.ConditionTrue) == (want == "MemberNotLearner")
	})
}

// untilBuried waits until a removed server has ended and left a tombstone. Between
// its removal and its end, a second later, etcd panics when somebody asks for its
// status ("failed to find local ID in cluster members"; so do 3.5 and 3.6, and
// nothing about it is the double's): then there is none yet, and the next start,
// which K3s's unit makes, leaves it.
func (f *fleet) untilBuried(t *testing.T, host string) {
	t.Helper()
	h := f.Host(host)
	for range 2 {
		f.WaitExit(h)
		if _, err := os.Stat(filepath.Join(h.Datastore(), "tombstone")); err == nil {
			return
		}
		f.WaitLog(h, "failed to find local ID")
		f.Start(h)
	}
	t.Errorf("%s left no tombstone", host)
}

var errStill = errors.New("it is still there")
