package endpoint

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"suffrage/membership/etcd"
)

// sight is what one look at a voter found.
type sight struct {
	voter   *voter
	leader  uint64
	members []*pb.Member
	leaving map[uint64]bool // members whose removal is asked for
	err     error           // why it is not to be led to
}

func (s sight) well() bool   { return s.err == nil }
func (s sight) leaves() bool { return s.leaving[s.voter.id] }

// member finds one in the list, nil when it is not listed.
func (s sight) member(id uint64) *pb.Member {
	if i := slices.IndexFunc(s.members, func(m *pb.Member) bool { return m.ID == id }); i >= 0 {
		return s.members[i]
	}
	return nil
}

// look asks a voter three small things. The member list through a quorum is what
// proves that it is worth being led to; what it says then of removals is at least
// as new.
func (e *Endpoint) look(ctx context.Context, v *voter) sight {
	ctx, cancel := context.WithTimeout(ctx, e.o.Etcd.Timeout.Std())
	defer cancel()
	s := sight{voter: v}
	s.err = func() error {
		status, err := pb.NewMaintenanceClient(v.conn).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		list, err := pb.NewClusterClient(v.conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err != nil {
			return err
		}
		id := list.Header.GetMemberId()
		s.leader, s.members = status.Leader, list.Members
		m := s.member(id)
		switch {
		case v.id != 0 && v.id != id: // the route's are read by others: never changed
			return fmt.Errorf("member %s answers there, not %s", etcd.ID(id), etcd.ID(v.id))
		case m == nil || m.IsLearner:
			return fmt.Errorf("it is no voter")
		case s.member(s.leader) == nil:
			return fmt.Errorf("it knows no leader")
		}
		if v.id == 0 {
			v.id, v.label = id, label(m)
		}
		s.leaving, err = etcd.Leaving(ctx, pb.NewKVClient(v.conn))
		return err
	}()
	return s
}

func label(m *pb.Member) string {
	if m.Name != "" {
		return m.Name
	}
	return etcd.ID(m.ID)
}

// lookAll looks at all of them at once, and leaves none behind.
func (e *Endpoint) lookAll(ctx context.Context, urls []string) []sight {
	out := make([]sight, len(urls))
	var all sync.WaitGroup
	for i, u := range urls {
		v, err := e.connect(u)
		if err != nil { // a URL that cannot be one
			out[i] = sight{err: err}
			continue
		}
		all.Go(func() { out[i] = e.look(ctx, v) })
	}
	all.Wait()
	return slices.DeleteFunc(out, func(s sight) bool { return s.voter == nil })
}

// connect prepares a connection; it is made by its first use.
func (e *Endpoint) connect(to string) (*voter, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %q is no client URL: %w", to, err)
	}
	var creds credentials.TransportCredentials = insecure.NewCredentials()
	if u.Scheme == "https" {
		creds = outward{e.o.Etcd}
	}
	again := backoff.DefaultConfig
	again.BaseDelay, again.MaxDelay = 100*time.Millisecond, time.Second
	conn, err := grpc.NewClient("passthrough:///"+u.Host,
		grpc.WithTransportCredentials(creds),
		grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0), grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: e.o.Etcd.Timeout.Std()}),
		// The looks find a silent voter sooner; etcd wants no pings more often than
		// every 5 s.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.MaxCallSendMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("endpoint: connect to %s: %w", to, err)
	}
	return newVoter(to, conn), nil
}
