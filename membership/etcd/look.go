package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"suffrage/membership"
)

// look is one member as it answered.
type look struct {
	member    membership.Member
	url       string
	alarms    []membership.Alarm
	downgrade *pb.DowngradeInfo
	trouble   *Trouble
}

var errUnreached = errors.New("etcd: it has no client URL")

// checkKey is never written: see writeCheck.
const checkKey = "/suffrage/check"

// look asks one member for everything, within one timeout.
func (o *Observer) look(ctx context.Context, t *tls.Config, m *pb.Member, extra []string, cluster string) look {
	l := look{member: membership.Member{ID: ID(m.ID), Name: m.Name, Host: o.hostOfMember(m.PeerURLs),
		PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner}}
	if !l.member.Started() {
		l.member.Error = "it was added and has never started"
		l.trouble = &Trouble{Subject: l.label(), What: l.member.Error, Next: "start it, or remove it again: etcdctl member remove " + l.member.ID}
		return l
	}
	ctx, cancel := within(ctx, o.cfg.Timeout.Std())
	defer cancel()
	c, s, err := o.reach(ctx, t, m, extra)
	if err != nil {
		return l.failed(err)
	}
	defer c.Close()
	l.url = c.Endpoint
	l.status(s)
	if got := ID(s.Header.GetClusterId()); got != cluster {
		l.member.Error = fmt.Sprintf("it belongs to cluster %s, the list to cluster %s", got, cluster)
		l.trouble = &Trouble{Subject: l.label(), What: l.member.Error, Next: "stop the member of the wrong cluster before anything else"}
		return l
	}
	if m.IsLearner {
		// Learners serve nothing that could prove more. A voter of the list that
		// believes itself a learner goes on, and fails below.
		l.member.Responding = true
		return l
	}
	if err := l.opine(ctx, c); err != nil {
		return l.failed(err)
	}
	err = o.check(ctx, c)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		// It answered: what is wrong is the cluster's, and has a name of its own.
		// Reads tell whether a quorum stands behind it.
		l.alarms = append(l.alarms, membership.Alarm{Member: l.member.ID, Kind: pb.AlarmType_NOSPACE.String()})
		t := trouble(l.label(), c.Endpoint, err)
		l.trouble = &t
		err = readCheck(ctx, c)
	}
	if err != nil {
		return l.failed(err)
	}
	l.member.Responding = true
	return l
}

func (l look) label() string { return l.member.Label() }

func (l look) failed(err error) look {
	endpoint := strings.Join(l.member.ClientURLs, ",")
	if call := (*CallError)(nil); errors.As(err, &call) {
		endpoint = call.Endpoint
	}
	what, next := Explain(err, endpoint)
	if l.url != "" {
		what = "it answers Status, but not a request through a quorum: " + what
	}
	l.member.Error = what
	l.trouble = &Trouble{Subject: l.label(), What: what, Next: next}
	return l
}

func statusOf(ctx context.Context, t *tls.Config, url string, id uint64) (*Conn, *pb.StatusResponse, error) {
	c, err := Dial(url, t)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.maintenance().Status(ctx, &pb.StatusRequest{})
	if err != nil {
		err = c.fail("status", err)
		c.Close()
		return nil, nil, err
	}
	if got := s.Header.GetMemberId(); got != id {
		c.Close()
		return nil, nil, fmt.Errorf("member %s answers at %s, not %s: its client URL leads to the wrong process", ID(got), url, ID(id))
	}
	return c, s, nil
}

func (l *look) status(s *pb.StatusResponse) {
	m := &l.member
	if s.Leader != 0 {
		m.Leader = ID(s.Leader)
	}
	m.RaftTerm, m.RaftIndex, m.AppliedIndex = s.RaftTerm, s.RaftIndex, s.RaftAppliedIndex
	m.Version, m.DBSize, m.DBInUse, m.Quota = s.Version, s.DbSize, s.DbSizeInUse, s.DbSizeQuota
	for _, e := range s.Errors {
		if a, ok := alarmIn(e); ok {
			l.alarms = append(l.alarms, a)
		} else {
			m.StatusErrors = append(m.StatusErrors, e)
		}
	}
	l.downgrade = s.DowngradeInfo // 3.6 and later
}

// opine reads the member list that this member has in its own store.
func (l *look) opine(ctx context.Context, c *Conn) error {
	r, err := c.cluster().MemberList(ctx, &pb.MemberListRequest{})
	if err != nil {
		return c.fail("member list", err)
	}
	if len(r.Members) > maxMembers {
		return fmt.Errorf("etcd: %s lists %d members; at most %d are expected", c.Endpoint, len(r.Members), maxMembers)
	}
	l.member.Opinion = opinion(r.Members)
	return nil
}

func (o *Observer) check(ctx context.Context, c *Conn) error {
	if o.readOnly {
		return readCheck(ctx, c)
	}
	return writeCheck(ctx, c)
}

// readCheck reads the member list through a quorum: etcd answers after its
// leader heard from a majority (ReadIndex), and nothing enters the log. A list,
// not a key, because no user needs a permission for it.
func readCheck(ctx context.Context, c *Conn) error {
	_, err := c.cluster().MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	return c.fail("member list through a quorum", err)
}

// writeCheck sends a transaction whose comparison is false by construction (no
// key has a version below 0), with a put in the branch not taken. etcd decides
// by the branches, not by the outcome, whether a transaction is a write
// (server/etcdserver/txn, IsTxnReadonly): so this one is proposed through this
// voter, appended and synced to the log of a majority, applied, and refused
// under a NOSPACE alarm, and yet changes no key and no revision.
// TestWriteCheckWritesNothing verifies that on a running etcd: the revision
// stays, the count of proposals grows by one each time.
//
// Its weakness: on a database that is within a few hundred bytes of its quota
// it raises the NOSPACE alarm, as the next ordinary write would have.
func writeCheck(ctx context.Context, c *Conn) error {
	key := []byte(checkKey)
	never := &pb.Compare{Key: key, Target: pb.Compare_VERSION, Result: pb.Compare_LESS, TargetUnion: &pb.Compare_Version{Version: 0}}
	put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key}}}
	r, err := c.kv().Txn(ctx, &pb.TxnRequest{Compare: []*pb.Compare{never}, Success: []*pb.RequestOp{put}})
	if err != nil {
		return c.fail("write check", err)
	}
	if r.Succeeded {
		return fmt.Errorf("etcd: write check of %s: a comparison that is never true was true; this is not etcd", c.Endpoint)
	}
	return nil
}
