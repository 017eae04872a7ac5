package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/fitness"
	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/observe"
)

// One cluster of each series, from all well to all that a stranger's may have.
func TestObserve(t *testing.T) {
	each(t, func(t *testing.T, r release) {
		c := membertest.New(t, membertest.Options{TLS: true, Server: r.program})
		until(t, c, "all well", well)
		t.Run("all is told", func(t *testing.T) { r.testTold(t, c) })
		t.Run("the command", func(t *testing.T) { r.testCommand(t, c) })
		t.Run("nothing is written", func(t *testing.T) { testObserveWritesNothing(t, c) })
		t.Run("a write check writes nothing", func(t *testing.T) { testCheckWritesNothing(t, c) })
		t.Run("a frozen member", func(t *testing.T) { r.testFrozen(t, c) })
		t.Run("a downgrade", func(t *testing.T) { r.testDowngrade(t, c) })
		t.Run("a learner", func(t *testing.T) { r.testLearner(t, c) })
	})
}

// write writes until the returned function is called.
func write(t *testing.T, cl *clientv3.Client) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = cl.Put(ctx, fmt.Sprintf("k%d", i), "v")
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// While it is written to, one endpoint gives all members with all figures.
func (r release) testTold(t *testing.T, c *membertest.Cluster) {
	stop := write(t, clientOf(t, c))
	got, err := observe.Run(patient(t), observe.Options{Etcd: configOf(c), For: 3 * time.Second})
	stop()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Members) != 3 || len(got.Troubles) != 0 || len(got.Alarms) != 0 || got.Error != "" {
		t.Errorf("a good cluster: %+v", got)
	}
	r.expect(t, got)
	if (got.Downgrade != nil) != r.tells || got.Downgrade != nil && *got.Downgrade != "" {
		t.Errorf("downgrade %v; want none where it is told (%v), null where not", got.Downgrade, r.tells)
	}
	if got.ElectionTimeoutFrom != "assumed" || got.ElectionTimeout != fitness.Duration(time.Second) {
		t.Errorf("election timeout %v, %s; etcd tells none", got.ElectionTimeout, got.ElectionTimeoutFrom)
	}
	leaders := 0
	for _, m := range got.Members {
		if m.Leader {
			leaders++
		}
		if m.Version != r.version || m.Role != "voter" || !m.Responding || m.List != "same" || m.Lag == nil || *m.Lag > 5000 || m.DBSize == 0 || m.DBInUse == 0 {
			t.Errorf("%+v", m)
		}
		if want := r.quota(2 << 30); m.Quota != want {
			t.Errorf("quota of %s: %d, want %d", m.Name, m.Quota, want)
		}
		if m.RoundTrip.P50 == nil || m.RoundTrip.Lost != 0 {
			t.Errorf("round trip of %s: %+v", m.Name, m.RoundTrip)
		}
		for what, d := range map[string]observe.Disk{"fsync": m.WALFsync, "commit": m.BackendCommit} {
			if d.Says == observe.NoMetrics || d.Count == 0 {
				t.Errorf("%s of %s: %+v", what, m.Name, d)
			}
		}
	}
	if leaders != 1 {
		t.Errorf("%d leaders", leaders)
	}
}

// What a person reads.
func (r release) testCommand(t *testing.T, c *membertest.Cluster) {
	program := os.Getenv("SUFFRAGE_BIN")
	if program == "" {
		t.Skip("SUFFRAGE_BIN does not name suffrage; `make compat` builds it and runs this")
	}
	out, err := exec.CommandContext(patient(t), program, "observe", "--endpoints", c.Endpoints()[0],
		"--cacert", c.CA, "--cert", c.Cert, "--key", c.Key, "--for", "2s").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
	if n := strings.Count(string(out), r.version); n < 3 {
		t.Errorf("the version stands there %d times, for 3 members", n)
	}
	for _, text := range []string{"/not told", "whether a downgrade is open: not told"} {
		if strings.Contains(string(out), text) == r.tells {
			t.Errorf("%q is there: %v; etcd %s tells: %v", text, !r.tells, r.series, r.tells)
		}
	}
}

// A frozen process: its kernel accepts, and only the timeout of what is asked
// of it ends the wait.
func (r release) testFrozen(t *testing.T, c *membertest.Cluster) {
	all := until(t, c, "all well", well)
	var victim *membertest.Member
	for _, m := range c.Members[1:] { // the first is the endpoint
		if !named(all, m.Name).Leader {
			victim = m
		}
	}
	victim.Signal(syscall.SIGSTOP)
	defer victim.Signal(syscall.SIGCONT)
	got := until(t, c, victim.Name+" alone silent", func(o observe.Report) bool {
		return o.Error == "" && !named(o, victim.Name).Responding && named(o, "h1").Responding
	})
	if m := named(got, victim.Name); !strings.Contains(m.Error, "no answer came in time") || m.Lag != nil {
		t.Errorf("frozen: %+v", m)
	}
	if len(got.Troubles) != 1 || got.Troubles[0].Next == "" {
		t.Errorf("troubles %v", got.Troubles)
	}
	r.expect(t, got, membership.VoterNotResponding)
	victim.Signal(syscall.SIGCONT)
	until(t, c, "all well again", well)
}

// An open downgrade is seen where it is told.
func (r release) testDowngrade(t *testing.T, c *membertest.Cluster) {
	if !r.tells {
		t.Skipf("etcd %s does not tell of one", r.series)
	}
	cl, ctx := clientOf(t, c), patient(t)
	do := func(a clientv3.DowngradeAction) {
		t.Helper()
		for { // not until the members agreed on the cluster's version
			_, err := cl.Downgrade(ctx, a, "3.5.0")
			if err == nil {
				return
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	do(clientv3.DowngradeEnable)
	got := until(t, c, "an open downgrade", func(o observe.Report) bool { return o.Downgrade != nil && *o.Downgrade != "" })
	if !strings.HasPrefix(*got.Downgrade, "3.5") {
		t.Errorf("downgrade to %q", *got.Downgrade)
	}
	r.expect(t, got, membership.DowngradeOpen)
	do(clientv3.DowngradeCancel)
	until(t, c, "no downgrade", func(o observe.Report) bool { return o.Downgrade != nil && *o.Downgrade == "" })
}

// A learner listed, then running: it is not unwell for what learners do not serve.
func (r release) testLearner(t *testing.T, c *membertest.Cluster) {
	cl, ctx := clientOf(t, c), patient(t)
	h4 := c.Another()
	for { // "unhealthy cluster" until connections are 5 s old
		_, err := cl.MemberAddAsLearner(ctx, []string{h4.Config.AdvertisePeer})
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	learner := func(o observe.Report) observe.Member {
		i := slices.IndexFunc(o.Members, func(m observe.Member) bool { return m.Role == "learner" })
		if i < 0 {
			return observe.Member{}
		}
		return o.Members[i]
	}
	h4.Start(false, true)
	// One that answers only at the end of a run has nothing measured in it.
	got := until(t, c, "the learner", func(o observe.Report) bool { return well(o) && learner(o).Responding && learner(o).RoundTrip.Count > 0 })
	if m := learner(got); m.Name != "h4" || m.Version != r.version || m.List != "not told" || m.Lag == nil || m.Error != "" || m.WALFsync.Says == observe.NoMetrics {
		t.Errorf("learner %+v", m)
	}
	for _, m := range c.Members {
		if v := named(got, m.Name); v.List != "same" || v.Role != "voter" {
			t.Errorf("%+v", v)
		}
	}
	r.expect(t, got, membership.LearnerPresent)
}

// A cluster without TLS whose database is full.
func TestNoSpace(t *testing.T) {
	each(t, func(t *testing.T, r release) {
		const quota = 2 << 20
		c := membertest.New(t, membertest.Options{Size: 1, Quota: quota, Server: r.program})
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
		got := until(t, c, "the alarm", func(o observe.Report) bool { return len(o.Alarms) > 0 })
		m := got.Members[0]
		want := []membership.Alarm{{Member: m.ID, Kind: "NOSPACE"}}
		if !slices.Equal(got.Alarms, want) || m.Error != "" || !m.Responding || m.Quota != r.quota(quota) {
			t.Errorf("alarms %v, want %v; %+v", got.Alarms, want, m)
		}
		r.expect(t, got, membership.AlarmRaised, membership.BelowMinimum)
		// The write check is refused, and that is no second fault.
		ob := etcd.NewObserver(configOf(c), etcd.Options{}).Observe(ctx)
		if !slices.Equal(ob.Alarms, want) || !ob.Members[0].Responding || len(ob.Troubles) != 1 || !strings.Contains(ob.Troubles[0].What, "NOSPACE") {
			t.Errorf("write check under NOSPACE: %+v", ob)
		}
	})
}
