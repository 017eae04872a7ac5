package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	electionPrefix = "/suffrage/controller" // who decides
	removerPrefix  = "/suffrage/removal"    // who acts on removals
)

// DefaultTTL is how long a leader that went silent keeps its place. It has to
// outlast two worst elections of etcd itself, during which no keep-alive gets
// through, or leadership is lost to every hiccup: an election takes up to twice
// the election timeout E, so 4·E, which is 4 s at etcd's default of 1 s.
// K3s's 5 s need MinTTL(5 s) = 20 s (measured: 8 s without writes when a leader
// is removed unmoved).
const DefaultTTL = 15 * time.Second

// MinTTL is the shortest TTL that outlasts two worst elections.
func MinTTL(electionTimeout time.Duration) time.Duration { return 4 * electionTimeout }

// ErrLost means that this process does not lead any more. It must end: whatever
// it believed while it led may be out of date.
var ErrLost = errors.New("etcd: leadership was lost")

// ErrNoLeader means that no controller leads at the moment.
var ErrNoLeader = errors.New("etcd: no controller leads")

// Candidate is who asks to lead.
type Candidate struct {
	// Host is the host's name, Instance is new for each process: a process that
	// was restarted does not inherit the place of the one before.
	Host     string
	Instance string
}

// Leadership is a place held, and the facts that others read.
type Leadership struct {
	Host     string    `json:"host"`
	Instance string    `json:"instance"`
	Since    time.Time `json:"since"`

	key string
	rev int64
}

// Held is the condition under which a transaction of this leader may write: its
// key is there, and is the very one that it made.
func (l Leadership) Held() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(l.key), "=", l.rev)
}

// Lead waits until who leads, then calls lead with a context that ends when
// leadership does. It gives lead's error, or ErrLost when leadership ended
// first, or ctx's error. The place is given up when lead returns. ttl is in
// whole seconds, at least 1 s. Without quorum, ending while still waiting takes
// until etcd's own request timeout: the library resigns without one.
func Lead(ctx context.Context, client *clientv3.Client, who Candidate, ttl time.Duration, lead func(context.Context, Leadership) error) error {
	return campaign(ctx, client, electionPrefix, who, ttl, lead)
}

func campaign(ctx context.Context, client *clientv3.Client, prefix string, who Candidate, ttl time.Duration, lead func(context.Context, Leadership) error) error {
	s, err := session(ctx, client, ttl)
	if err != nil {
		return err
	}
	defer leave(s)
	e := concurrency.NewElection(s, prefix)
	l := Leadership{Host: who.Host, Instance: who.Instance, Since: time.Now().UTC()}
	waiting, cancel := whileAlive(ctx, s)
	err = e.Campaign(waiting, l.value())
	cancel()
	if err != nil {
		return lost(ctx, s, fmt.Errorf("etcd: wait for leadership: %w", err))
	}
	l.key, l.rev = e.Key(), e.Rev()
	leading, cancel := whileAlive(ctx, s)
	defer cancel()
	l.Since = time.Now().UTC()
	if err := e.Proclaim(leading, l.value()); err != nil {
		return lost(ctx, s, fmt.Errorf("etcd: say who leads: %w", err))
	}
	return lost(ctx, s, lead(leading, l))
}

// giveUp is how long giving up the place may take.
const giveUp = 2 * time.Second

// session takes a lease and keeps it. The session outlives ctx, so that the
// place can be given up at once instead of letting the others wait for the TTL.
func session(ctx context.Context, client *clientv3.Client, ttl time.Duration) (*concurrency.Session, error) {
	seconds := max(1, int(ttl/time.Second))
	grant, err := client.Grant(ctx, int64(seconds))
	if err != nil {
		return nil, fmt.Errorf("etcd: ask for a lease: %w", err)
	}
	s, err := concurrency.NewSession(client, concurrency.WithLease(grant.ID), concurrency.WithContext(context.WithoutCancel(ctx)), concurrency.WithTTL(seconds))
	if err != nil {
		return nil, fmt.Errorf("etcd: keep the lease: %w", err)
	}
	return s, nil
}

// leave revokes the lease, which deletes the election key.
func leave(s *concurrency.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Ctx()), giveUp)
	defer cancel()
	s.Orphan()
	_, _ = s.Client().Revoke(ctx, s.Lease()) // else it ends with its TTL
}

// whileAlive is ctx until the session ends.
func whileAlive(ctx context.Context, s *concurrency.Session) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.Ctx(), func() { cancel(ErrLost) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

func lost(ctx context.Context, s *concurrency.Session, err error) error {
	select {
	case <-s.Done():
		if ctx.Err() == nil {
			return errors.Join(ErrLost, err)
		}
	default:
	}
	return err
}

func (l Leadership) value() string {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // three plain fields
	}
	return string(b)
}

// Leader reads who leads, or gives ErrNoLeader.
func Leader(ctx context.Context, kv clientv3.KV) (Leadership, error) {
	return leaderOf(ctx, kv, electionPrefix)
}

// Controllers are the hosts whose controllers lead or wait to lead, sorted. One that
// went silent counts until its TTL is over.
func Controllers(ctx context.Context, kv clientv3.KV) ([]string, error) {
	r, err := kv.Get(ctx, electionPrefix+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("etcd: read who waits to lead: %w", err)
	}
	var hosts []string
	for _, one := range r.Kvs {
		var l Leadership
		if err := strict(one.Value, &l); err != nil {
			return nil, fmt.Errorf("etcd: read who waits to lead: %s: %w", one.Key, err)
		}
		hosts = append(hosts, l.Host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), nil
}

func leaderOf(ctx context.Context, kv clientv3.KV, prefix string) (Leadership, error) {
	r, err := kv.Get(ctx, prefix+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return Leadership{}, fmt.Errorf("etcd: read who leads: %w", err)
	}
	if len(r.Kvs) == 0 {
		return Leadership{}, ErrNoLeader
	}
	var l Leadership
	if err := strict(r.Kvs[0].Value, &l); err != nil {
		return Leadership{}, fmt.Errorf("etcd: read who leads: %s: %w", r.Kvs[0].Key, err)
	}
	l.key, l.rev = string(r.Kvs[0].Key), r.Kvs[0].CreateRevision
	return l, nil
}
