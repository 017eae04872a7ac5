package endpoint

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/member/membertest"
	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/kubetest"
)

// TestEveryVoter swaps every voter, one after the other, by the bare calls that a
// swap makes and with the annotation: no write fails, none is lost, and the watch
// has no gap.
func TestEveryVoter(t *testing.T) {
	f := newFleet(t, func(o *Options, c *membertest.Cluster) { o.Address = c.Members[0].Address })
	f.leads("it leads", anywhere)
	judge := f.write()
	f.swapEvery()
	judge()
}

// TestKubernetesEveryVoter is the same below a Kubernetes API server, whose
// ConfigMaps are written, read and created all the time.
func TestKubernetesEveryVoter(t *testing.T) {
	kubetest.Need(t)
	f := newFleet(t, func(o *Options, c *membertest.Cluster) { o.Address = c.Members[0].Address })
	f.leads("it leads", anywhere)
	server := kubetest.Over(t, f.Members[0].Address, kubetest.Below{Endpoints: []string{"http://" + f.o.Config.Listen}})
	maps := server.ConfigMaps("endpoint")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	judged := make(chan func(), 1)
	go func() {
		h, seen := maps.Run(ctx)
		judged <- func() { history.Judge(t, h, seen, "") }
	}()
	f.swapEvery()
	stop()
	(<-judged)()
	for _, e := range maps.Errors() {
		t.Error(e)
	}
	for _, cached := range []bool{false, true} {
		f.until("every ConfigMap that was made is listed", func() bool {
			missing, err := maps.Missing(t.Context(), cached)
			if err != nil {
				t.Fatal(err)
			}
			return len(missing) == 0
		})
	}
}

// swapEvery swaps each of the first voters for a new one.
func (f *fleet) swapEvery() {
	f.t.Helper()
	for _, out := range f.Members[:3:3] {
		f.swap(out)
	}
}

// swap is what a swap does to etcd, and waits for no agent but the endpoint.
func (f *fleet) swap(out *membertest.Member) {
	f.t.Helper()
	began := time.Now()
	c := f.direct()
	defer c.Close()
	in := f.Another()
	added := f.added(c, in)
	f.Members = append(f.Members, in)
	in.Start(false, true)
	f.until("the newcomer votes", func() bool {
		_, err := c.MemberPromote(f.t.Context(), added)
		return err == nil || errors.Is(err, rpctypes.ErrMemberNotLearner)
	})
	in.WaitServing()
	c.SetEndpoints(in.Config.AdvertiseClient)
	f.moveLeader(c, in)
	id := f.id(out.Name)
	ask := `{"member":"` + id + `","name":"` + out.Name + `","peer":"` + out.Config.AdvertisePeer + `","operation":"o","term":1,"at":"2026-01-01T00:00:00Z","held":true}`
	key := "/suffrage/hosts/" + out.Name + "/remove"
	if _, err := c.Put(f.t.Context(), key, ask); err != nil {
		f.t.Fatal(err)
	}
	f.leads("nothing is on "+out.Name, notOn(id))
	number, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		f.t.Fatal(err)
	}
	f.until(out.Name+" is removed", func() bool { // "unhealthy cluster" within 5 s of the change before
		_, err := c.MemberRemove(f.t.Context(), number)
		return err == nil || contains(err, "member not found")
	})
	_, _ = out.Wait()
	f.gone++
	if _, err := c.Delete(f.t.Context(), key); err != nil {
		f.t.Fatal(err)
	}
	f.t.Logf("%s → %s in %v", out.Name, in.Name, time.Since(began).Round(time.Millisecond))
}

// added adds a member as a learner, and gives it all that are listed to join.
func (f *fleet) added(c *clientv3.Client, in *membertest.Member) (id uint64) {
	f.t.Helper()
	f.until("a learner is added", func() bool {
		r, err := c.MemberAddAsLearner(f.t.Context(), []string{in.Config.AdvertisePeer})
		if err != nil {
			return false
		}
		id = r.Member.ID
		in.Config.InitialCluster = map[string]string{}
		for _, m := range r.Members {
			name := m.Name
			if m.ID == id {
				name = in.Name
			}
			in.Config.InitialCluster[name] = m.PeerURLs[0]
		}
		return true
	})
	return id
}
