package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// One cluster of three real processes, and what can go wrong with it.
func TestObserve(t *testing.T) {
	c := membertest.New(t, membertest.Options{TLS: true})
	o := etcd.NewObserver(configOf(c), etcd.Options{HostOf: c.HostOf})
	ob := see(t, o, "all well", func(ob etcd.Observation) bool { return respond(ob, "h1", "h2", "h3") })
	var v membership.View
	ob.Fill(&v)
	if v.Leader() == "" || v.ClusterID == "" || len(ob.Troubles) != 0 || len(v.Alarms) != 0 {
		t.Errorf("all is well, yet: %+v", ob)
	}
	for _, m := range ob.Members {
		if !slices.Equal(m.Opinion, voterIDs(ob)) || m.Quota != 2<<30 || m.Version == "" || m.Name != m.Host {
			t.Errorf("not all was read of %+v", m)
		}
	}
	t.Run("a write check writes nothing", func(t *testing.T) { testWritesNothing(t, c) })
	t.Run("a frozen voter", func(t *testing.T) { testFrozen(t, c, o) })
	t.Run("a voter alone", func(t *testing.T) { testAlone(t, c) })
	t.Run("a learner", func(t *testing.T) { testLearner(t, c, o) })
}

// What writeCheck's comment claims: proposed through every voter, logged, and
// no revision taken; and ReadOnly enters nothing at all into etcd's log.
func testWritesNothing(t *testing.T, c *membertest.Cluster) {
	cl, ctx := clientOf(t, c), patient(t)
	state := func() (revision int64, index uint64) {
		s, err := cl.Status(ctx, c.Endpoints()[0])
		if err != nil {
			t.Fatal(err)
		}
		return s.Header.Revision, s.RaftIndex
	}
	o := etcd.NewObserver(configOf(c), etcd.Options{HostOf: c.HostOf})
	rev, index := state()
	const rounds = 4
	for range rounds {
		see(t, o, "all well", func(ob etcd.Observation) bool { return respond(ob, "h1", "h2", "h3") })
	}
	rev2, index2 := state()
	if rev2 != rev {
		t.Errorf("the revision went from %d to %d", rev, rev2)
	}
	if index2 < index+3*rounds {
		t.Errorf("the log grew by %d entries; %d write checks should be in it", index2-index, 3*rounds)
	}
	if g, err := cl.Get(ctx, "/suffrage/", clientPrefix()); err != nil || g.Count != 0 {
		t.Errorf("keys under /suffrage/: %v, %v", g, err)
	}
	// etcd proposes for itself now and then, so one quiet run of several is proof:
	// a read that proposed would do so in each.
	quiet := etcd.NewObserver(configOf(c), etcd.Options{HostOf: c.HostOf, ReadOnly: true})
	for range 20 {
		_, before := state()
		see(t, quiet, "all well", func(ob etcd.Observation) bool { return respond(ob, "h1", "h2", "h3") })
		if _, after := state(); after == before {
			return
		}
	}
	t.Error("every read-only observation added to etcd's log")
}

func testFrozen(t *testing.T, c *membertest.Cluster, o *etcd.Observer) {
	h3 := c.Members[2]
	h3.Signal(syscall.SIGSTOP)
	defer h3.Signal(syscall.SIGCONT)
	// Its kernel still accepts connections: only an answer counts (etcd.md 31).
	ob := see(t, o, "h3 alone silent", func(ob etcd.Observation) bool {
		return respond(ob, "h1", "h2") && !named(ob, "h3").Responding
	})
	if e := named(ob, "h3").Error; !strings.Contains(e, "no answer came in time") {
		t.Errorf("h3 is frozen: %q", e)
	}
	since := named(ob, "h3").Since
	ob = see(t, o, "h3 still silent", func(ob etcd.Observation) bool { return respond(ob, "h1", "h2") })
	if !named(ob, "h3").Since.Equal(since) {
		t.Error("since when it is silent must not move")
	}
	h3.Signal(syscall.SIGCONT)
	ob = see(t, o, "h3 back", func(ob etcd.Observation) bool { return respond(ob, "h1", "h2", "h3") })
	if !named(ob, "h3").Since.After(since) {
		t.Error("it has responded only since it came back")
	}
}

// Two of three are gone: Status of the third still names a leader for a while,
// and nothing must be decided on what it says (S009).
func testAlone(t *testing.T, c *membertest.Cluster) {
	cfg := configOf(c)
	cfg.Endpoints = cfg.Endpoints[:1]
	o := etcd.NewObserver(cfg, etcd.Options{HostOf: c.HostOf})
	for _, m := range c.Members[1:] {
		m.Signal(syscall.SIGSTOP)
		defer m.Signal(syscall.SIGCONT)
	}
	ob := see(t, o, "no quorum", func(ob etcd.Observation) bool { return ob.Error != "" })
	if len(ob.Members) != 3 || respond(ob, "h1") || named(ob, "h1").Responding || ob.ClusterID == "" {
		t.Errorf("one voter alone: %+v", ob)
	}
	if !strings.Contains(ob.Error, "through a quorum") {
		t.Errorf("error %q", ob.Error)
	}
}

func testLearner(t *testing.T, c *membertest.Cluster, o *etcd.Observer) {
	see(t, o, "all back", func(ob etcd.Observation) bool { return respond(ob, "h1", "h2", "h3") })
	cl, ctx := clientOf(t, c), patient(t)
	h4 := c.Another()
	for { // "unhealthy cluster" until connections are 5 s old (etcd.md 28)
		_, err := cl.MemberAddAsLearner(ctx, []string{h4.Config.AdvertisePeer})
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	learner := func(ob etcd.Observation) membership.Member {
		i := slices.IndexFunc(ob.Members, func(m membership.Member) bool { return m.Learner })
		if i < 0 {
			return membership.Member{}
		}
		return ob.Members[i]
	}
	ob := see(t, o, "a learner listed", func(ob etcd.Observation) bool { return learner(ob).ID != "" && respond(ob, "h1", "h2", "h3") })
	if m := learner(ob); m.Started() || m.Responding || !strings.Contains(m.Error, "never started") {
		t.Errorf("it was never started: %+v", m)
	}
	h4.Start(false, true)
	ob = see(t, o, "the learner answering", func(ob etcd.Observation) bool { return learner(ob).Responding })
	want := append(voterIDs(ob), learner(ob).ID+"?")
	slices.Sort(want)
	if got := named(ob, "h1").Opinion; !slices.Equal(got, want) {
		t.Errorf("opinion %v, want %v", got, want)
	}
	if m := learner(ob); m.Opinion != nil || m.Error != "" {
		t.Errorf("learners do not serve the list, and are not unwell for it (S040): %+v", m)
	}
}

// Under NOSPACE Status, reads and membership calls work while every write
// fails (S063): the alarm names it, on whichever way one looks.
func TestNoSpace(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1, Quota: 2 << 20})
	cl, ctx := clientOf(t, c), patient(t)
	for i := 0; ; i++ {
		_, err := cl.Put(ctx, fmt.Sprintf("fill/%d", i), strings.Repeat("x", 100<<10))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, readOnly := range []bool{false, true} {
		o := etcd.NewObserver(configOf(c), etcd.Options{HostOf: c.HostOf, ReadOnly: readOnly})
		ob := see(t, o, "the alarm", func(ob etcd.Observation) bool { return len(ob.Alarms) > 0 })
		m := ob.Members[0]
		if want := []membership.Alarm{{Member: m.ID, Kind: "NOSPACE"}}; !slices.Equal(ob.Alarms, want) {
			t.Errorf("read only %v: alarms %v, want %v once", readOnly, ob.Alarms, want)
		}
		if !m.Responding || len(m.StatusErrors) != 0 {
			t.Errorf("read only %v: it answers, through a quorum; the alarm says what is wrong: %+v", readOnly, m)
		}
		if readOnly {
			continue
		}
		if len(ob.Troubles) != 1 || !strings.Contains(ob.Troubles[0].What, "NOSPACE") || !strings.Contains(ob.Troubles[0].Next, "disarm") {
			t.Errorf("troubles: %v", ob.Troubles)
		}
	}
}

// An observation ends when it is told to.
func TestObserveEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := etcd.DefaultConfig()
	cfg.Endpoints = []string{"http://127.0.0.1:1"}
	ob := etcd.NewObserver(cfg, etcd.Options{}).Observe(ctx)
	if ob.Error == "" || len(ob.Members) != 0 {
		t.Errorf("%+v", ob)
	}
}

// voterIDs are the IDs of the voters, sorted.
func voterIDs(o etcd.Observation) []string {
	var ids []string
	for _, m := range o.Members {
		if !m.Learner {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
