package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/url"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"suffrage/membership"
)

// Options are what an Observer is told besides how to reach the cluster.
type Options struct {
	// HostOf names the host that has a peer address, or gives "". The address is
	// the host part of a peer URL.
	HostOf func(address string) string
	// ReadOnly proves quorum by a linearizable read instead of the write check:
	// nothing is appended to etcd's log. The write check is stronger: reads pass
	// where writes do not (NOSPACE, a stalled disk).
	ReadOnly bool
}

// Observer looks at a cluster, again and again. It remembers since when each
// member has responded or not. One goroutine uses it at a time.
type Observer struct {
	cfg      Config
	hostOf   func(string) string
	readOnly bool
	seen     map[string]responding
}

type responding struct {
	value bool
	since time.Time
}

// NewObserver does not connect; cfg must be valid.
func NewObserver(cfg Config, o Options) *Observer {
	if o.HostOf == nil {
		o.HostOf = func(string) string { return "" }
	}
	return &Observer{cfg: cfg, hostOf: o.HostOf, readOnly: o.ReadOnly, seen: map[string]responding{}}
}

// Observe looks once. It takes at most twice the configured timeout, and
// whatever goes wrong is in the Observation: the caller must be able to show
// and judge a cluster that is half gone.
func (o *Observer) Observe(ctx context.Context) Observation {
	ob := Observation{At: time.Now().UTC(), Reached: map[string]string{}}
	t, err := o.cfg.TLS()
	if err != nil {
		what, next := Explain(err, "")
		ob.Error = what
		ob.Troubles = []Trouble{{Subject: "certificates", What: what, Next: next}}
		return ob
	}
	listed, done := o.list(ctx, t, &ob)
	defer done()

	extra := o.extra(listed)
	looks := make([]look, len(listed))
	var wg sync.WaitGroup
	for i, m := range listed {
		wg.Go(func() { looks[i] = o.look(ctx, t, m, extra, ob.ClusterID) })
	}
	wg.Wait()
	for _, l := range looks {
		ob.add(l)
	}
	slices.SortFunc(ob.Members, func(a, b membership.Member) int { return cmp.Compare(a.ID, b.ID) })
	ob.Alarms = sortAlarms(ob.Alarms)
	slices.SortStableFunc(ob.Troubles, func(a, b Trouble) int { return cmp.Compare(a.Subject, b.Subject) })
	o.remember(&ob)
	return ob
}

func (ob *Observation) add(l look) {
	ob.Members = append(ob.Members, l.member)
	ob.Alarms = append(ob.Alarms, l.alarms...)
	if l.url != "" {
		ob.Reached[l.member.ID] = l.url
	}
	if l.trouble != nil {
		ob.Troubles = append(ob.Troubles, *l.trouble)
	}
	if l.downgrade != nil {
		ob.DowngradeTold = true
		if l.downgrade.Enabled {
			ob.Downgrade = cmp.Or(l.downgrade.TargetVersion, "unknown version")
		}
	}
}

// remember keeps since when each member is what it is, and forgets members
// that are gone.
func (o *Observer) remember(ob *Observation) {
	now := map[string]responding{}
	for i := range ob.Members {
		m := &ob.Members[i]
		r, ok := o.seen[m.ID]
		if !ok || r.value != m.Responding {
			r = responding{m.Responding, ob.At}
		}
		m.Since = r.since
		now[m.ID] = r
	}
	o.seen = now
}

// hostOfMember finds the host by the address in a peer URL: peer URLs are what
// the roster's mesh address is in, client URLs may be anything.
func (o *Observer) hostOfMember(peerURLs []string) string {
	for _, p := range peerURLs {
		if u, err := url.Parse(p); err == nil {
			if h := o.hostOf(u.Hostname()); h != "" {
				return h
			}
		}
	}
	return ""
}

// extra are the configured endpoints that no member lists as its client URL: a
// port-forward, or 127.0.0.1 beside a member that lists its mesh address.
func (o *Observer) extra(members []*pb.Member) []string {
	var out []string
	for _, e := range o.cfg.Endpoints {
		if !slices.ContainsFunc(members, func(m *pb.Member) bool { return slices.Contains(m.ClientURLs, e) }) {
			out = append(out, e)
		}
	}
	return out
}

// maxURLs is the most client URLs of one member that are tried.
const maxURLs = 4

// reach connects to a member at each of its URLs at once and keeps the first
// connection that the right member answers on.
func (o *Observer) reach(ctx context.Context, t *tls.Config, m *pb.Member, extra []string) (*Conn, *pb.StatusResponse, error) {
	type answer struct {
		place int
		conn  *Conn
		s     *pb.StatusResponse
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	urls := slices.Concat(m.ClientURLs[:min(len(m.ClientURLs), maxURLs)], extra)
	answers := make(chan answer, len(urls))
	for i, u := range urls {
		go func() {
			a := answer{place: i}
			a.conn, a.s, a.err = statusOf(ctx, t, u, m.ID)
			answers <- a
		}()
	}
	var won *answer
	first := answer{place: len(urls), err: errUnreached}
	for range urls {
		a := <-answers
		switch {
		case a.err == nil && won == nil:
			won = &a
			cancel()
		case a.err == nil:
			a.conn.Close()
		case a.place < first.place:
			first = a
		}
	}
	if won == nil {
		return nil, nil, first.err
	}
	return won.conn, won.s, nil
}
