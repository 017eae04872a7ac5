package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// asked is what one configured endpoint said of the membership.
type asked struct {
	place    int // in Config.Endpoints
	endpoint string
	cluster  uint64
	quorum   []*pb.Member // read through a quorum; nil when err is set
	own      []*pb.Member // what the member has in its own store
	err      error
}

// ask reads the member list from one endpoint: first from the member's own
// store, which needs no quorum, then through a quorum. A learner serves
// neither and is never used for lists.
func ask(ctx context.Context, endpoint string, t *tls.Config) (a asked) {
	a.endpoint = endpoint
	c, err := Dial(endpoint, t)
	if err != nil {
		a.err = err
		return a
	}
	defer c.Close()
	own, err := c.cluster().MemberList(ctx, &pb.MemberListRequest{})
	if err != nil {
		a.err = c.fail("member list", err)
		return a
	}
	a.own, a.cluster = own.Members, own.Header.GetClusterId()
	list, err := c.cluster().MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	if err != nil {
		a.err = c.fail("member list through a quorum", err)
		return a
	}
	if n := len(list.Members); n == 0 || n > maxMembers {
		a.err = fmt.Errorf("etcd: member list of %s has %d members; 1 to %d are expected", endpoint, n, maxMembers)
		return a
	}
	a.quorum = list.Members
	return a
}

// list asks all endpoints at once and takes the first list read through a
// quorum: any such list is right. Without one it gives what some member has in
// its own store, and says why. The rest of the answers is waited for by done.
func (o *Observer) list(ctx context.Context, t *tls.Config, ob *Observation) (members []*pb.Member, done func()) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout.Std())
	n := len(o.cfg.Endpoints)
	answers := make(chan asked, n)
	for i, e := range o.cfg.Endpoints {
		go func() {
			a := ask(ctx, e, t)
			a.place = i
			answers <- a
		}()
	}
	left := n
	done = func() {
		cancel()
		for ; left > 0; left-- {
			<-answers
		}
	}
	all := make([]asked, n)
	for left > 0 {
		a := <-answers
		left--
		if a.err == nil {
			ob.ClusterID = ID(a.cluster)
			return a.quorum, done
		}
		all[a.place] = a
	}
	var troubles []Trouble
	for _, a := range all {
		troubles = append(troubles, trouble(a.endpoint, a.endpoint, a.err))
		if members == nil && len(a.own) <= maxMembers {
			members = a.own
			if a.own != nil {
				ob.ClusterID = ID(a.cluster)
			}
		}
	}
	ob.Error = listError(o.cfg.Timeout.Std(), troubles)
	ob.Troubles = append(ob.Troubles, troubles...)
	return members, done
}

func trouble(subject, endpoint string, err error) Trouble {
	what, next := Explain(err, endpoint)
	return Trouble{Subject: subject, What: what, Next: next}
}

// within bounds the time of one member; the parent's own end counts too.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, errNoAnswer)
}

var errNoAnswer = errors.New("no answer in time")
