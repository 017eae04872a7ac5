package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/control"
)

// requestAge is the oldest request that is acted on. It is by two hosts' clocks,
// so it only ever refuses; what keeps an old request from being acted on is
// that its Term must be held.
const requestAge = 2 * time.Minute

// Remover acts on the removals that are asked for by annotation. One of all
// removers does, by an election of its own: it need not be where the Lease is.
//
// It removes a member only when the annotation, the Lease and a list that a
// quorum stands behind all agree. At least three voters stay, unless the journal
// in the Lease says that the owner has a dead one removed: then it must not
// answer, and all that stay must. It says nothing of having removed it: the
// member list is what tells (S025). Where it will not, it writes the reason into
// the annotation, once and for ever (S027). Where only time is missing, such as
// etcd's "unhealthy cluster", it looks again, until the request is too old.
//
// Right before the call it claims the annotation in one transaction, which is
// made only if this remover still leads, the annotation is the one that it
// judged, and the Lease's record is too. Whoever asked cannot withdraw a claimed
// request. So a request that was withdrawn is never acted on, whoever froze
// when; what remains is the time between that transaction and the call.
//
// It keeps nothing that counts: another one that takes over at any point goes on
// from the annotation.
type Remover struct {
	Client  *clientv3.Client
	Lease   Lease
	Changer *Changer
	Who     Candidate
	// TTL is the election's, see MinTTL; it must be above Changer.Most, so that a
	// call of one that died has come to an end before the next one begins.
	TTL time.Duration
	// HostOf names the host of the roster that has a peer address.
	HostOf func(address string) string
	// Every is the longest time between two looks at the annotations. 0 is 1 s.
	Every time.Duration
	Log   *slog.Logger

	// settled is when the last call for a host that had no answer has come to an
	// end. Before that nothing says that the removal will not happen.
	settled map[string]time.Time
	said    map[string]string // what was last logged of a host
}

// Run waits for its turn and acts until ctx ends, or until it lost its place:
// then the error is ErrLost and the process has to end.
func (r *Remover) Run(ctx context.Context) error {
	if r.TTL <= r.Changer.Most() {
		return fmt.Errorf("etcd: removal controller: TTL %v has to be above %v: 5 s + 2·election_timeout + %v", r.TTL, r.Changer.Most(), replyMargin)
	}
	return campaign(ctx, r.Client, removerPrefix, r.Who, r.TTL, func(ctx context.Context, l Leadership) error {
		r.settled, r.said = map[string]time.Time{}, map[string]string{}
		r.Log.Info("acting on removals", "instance", l.Instance)
		// A watch tells of a request at once. It may end or be cut off, so the clock
		// is what counts.
		written := r.Client.Watch(ctx, hostsPrefix, clientv3.WithPrefix())
		for {
			if err := r.round(ctx, l); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case _, watched := <-written:
				if !watched {
					written = nil
				}
			case <-time.After(cmp.Or(r.Every, time.Second)):
			}
		}
	})
}

// round looks at every annotation once. Its error ends the remover.
func (r *Remover) round(ctx context.Context, l Leadership) error {
	reads, cancel := r.brief(ctx)
	defer cancel()
	all, err := annotations(reads, r.Client)
	if err != nil {
		r.say("", "removals cannot be read", "err", err)
		return nil
	}
	r.say("", "")
	for _, a := range all {
		if a.bad != nil || a.Refused != "" || a.Held {
			continue
		}
		if a.Acting != "" && r.settled[a.host].IsZero() {
			// Somebody before us made a call, and we do not know when.
			r.settled[a.host] = time.Now().Add(r.Changer.Most())
		}
		if err := r.act(ctx, l, a); errors.Is(err, ErrLost) {
			return err
		} else if err != nil && ctx.Err() == nil {
			r.say(a.host, "removal not done yet", "err", err)
		}
	}
	return nil
}

// brief bounds reads and writes of keys.
func (r *Remover) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.Changer.Most())
}

// act judges one request and carries it out, or refuses it. An error means that
// it is looked at again.
func (r *Remover) act(ctx context.Context, l Leadership, a annotated) error {
	reads, cancel := r.brief(ctx)
	defer cancel()
	held, err := r.Lease.Get(reads)
	if err != nil {
		return err
	}
	why := a.outdated(held.Record, time.Now())
	may, err := a.judge(held.Record)
	if err != nil {
		return err
	}
	if why == "" {
		ob := r.Changer.observe(ctx)
		if ob.Error != "" {
			return fmt.Errorf("etcd: removal of %s: %s", a.host, ob.Error)
		}
		var gone bool
		if gone, why = a.misses(ob.Members, r.HostOf); gone {
			return r.unclaim(ctx, l, a, "")
		}
	}
	if why != "" {
		return r.refuse(ctx, l, a, why)
	}
	r.say(a.host, "removing", "member", a.Member, "op", a.Operation, "term", a.Term)
	err = r.Changer.remove(ctx, a.Member, may, func(ctx context.Context) error { return r.claim(ctx, l, &a) })
	rejected := (*RejectedError)(nil)
	switch {
	case err == nil:
		r.say(a.host, "removed", "member", a.Member, "op", a.Operation, "term", a.Term)
		return r.unclaim(ctx, l, a, "")
	case errors.As(err, &rejected) && (!rejected.Retry || errors.Is(err, ErrSilent)):
		return r.refuse(ctx, l, a, rejected.Error())
	case rejected != nil:
		return errors.Join(err, r.release(ctx, l, a))
	case errors.Is(err, control.ErrUnknown):
		r.settled[a.host] = time.Now().Add(r.Changer.Most())
	}
	return err
}

// claim is the last look: on nil all that was judged still holds.
func (r *Remover) claim(ctx context.Context, l Leadership, a *annotated) error {
	ctx, cancel := r.brief(ctx)
	defer cancel()
	held, err := r.Lease.Get(ctx)
	if err != nil {
		return err
	}
	if why := a.outdated(held.Record, time.Now()); why != "" {
		return errors.New(why) // the next look refuses it
	}
	same, err := r.Lease.same(held)
	if err != nil {
		return err
	}
	claimed := a.Annotation
	claimed.Acting = l.Host
	rev, err := r.write(ctx, l, *a, claimed, same)
	if err != nil {
		return err
	}
	a.Annotation, a.rev = claimed, rev
	return nil
}

// outdated says why a request does not belong to the Lease as it is held.
func (a Annotation) outdated(held lease.Record, now time.Time) string {
	switch age := now.Sub(a.At); {
	case held.Term == 0:
		return "there is no Lease, so nobody may ask for a removal"
	case a.Term != held.Term:
		return fmt.Sprintf("it was asked for in term %d of the Lease, which is in term %d", a.Term, held.Term)
	case held.Holder == (lease.Holder{}):
		return fmt.Sprintf("nobody holds the Lease any more, term %d", held.Term)
	case age > requestAge:
		return fmt.Sprintf("it was asked for %v ago, at most %v", age.Round(time.Second), requestAge)
	case age < -requestAge:
		return fmt.Sprintf("it will be asked for in %v: compare the clocks", -age.Round(time.Second))
	}
	return ""
}

// judge gives what a removal is judged by. That the member is dead is what the
// journal says, not the annotation: it is compared again with the claim.
func (a Annotation) judge(held lease.Record) (func(scene, membership.Member) error, error) {
	op, err := readJournal(held.Journal)
	if err != nil {
		return nil, err
	}
	if op != nil && op.ID == a.Operation && op.Dead && op.OutMember == a.Member {
		return scene.dead, nil
	}
	return func(s scene, m membership.Member) error { return s.removable(m, minVoters) }, nil
}

// misses says in what the member differs from the request. It is gone when
// nothing in the list is like it: that alone is what a removal ends in.
func (a annotated) misses(members []membership.Member, hostOf func(string) string) (gone bool, why string) {
	m, listed := find(members, a.Member)
	if !listed {
		for _, x := range members {
			if x.Name == a.Name || slices.Contains(x.PeerURLs, a.Peer) {
				return false, fmt.Sprintf("no member %s; member %s has its name or its peer URL", a.Member, x.ID)
			}
		}
		return true, ""
	}
	switch {
	case a.Name != a.host:
		return false, fmt.Sprintf("the annotation is on host %s and names member %q", a.host, a.Name)
	case m.Name != a.Name:
		return false, fmt.Sprintf("member %s has the name %q, not %q", a.Member, m.Name, a.Name)
	case !slices.Contains(m.PeerURLs, a.Peer):
		return false, fmt.Sprintf("member %s has the peer URLs %q, not %s", a.Member, m.PeerURLs, a.Peer)
	}
	if h := (&Observer{hostOf: hostOf}).hostOfMember([]string{a.Peer}); h != a.host {
		return false, fmt.Sprintf("%s is the address of host %q in the roster, not of %s", a.Peer, h, a.host)
	}
	return false, ""
}

// refuse writes the reason down, once no call can still be under way.
func (r *Remover) refuse(ctx context.Context, l Leadership, a annotated, why string) error {
	if t := r.settled[a.host]; time.Now().Before(t) {
		return fmt.Errorf("etcd: removal of %s: a call may still be under way, then it is refused: %s", a.host, why)
	}
	r.say(a.host, "removal refused", "member", a.Member, "op", a.Operation, "err", why)
	return r.unclaim(ctx, l, a, why)
}

// release gives a claim back after etcd said no, unless an earlier call has not
// come to its end.
func (r *Remover) release(ctx context.Context, l Leadership, a annotated) error {
	if time.Now().Before(r.settled[a.host]) {
		return nil
	}
	return r.unclaim(ctx, l, a, "")
}

// unclaim writes that nobody is at it, and why it was refused, if it was.
func (r *Remover) unclaim(ctx context.Context, l Leadership, a annotated, refused string) error {
	ctx, cancel := r.brief(ctx)
	defer cancel()
	delete(r.settled, a.host)
	next := a.Annotation
	next.Acting, next.Refused = "", refused
	if next == a.Annotation {
		return nil
	}
	_, err := r.write(ctx, l, a, next)
	return err
}

func (r *Remover) write(ctx context.Context, l Leadership, a annotated, next Annotation, more ...clientv3.Cmp) (rev int64, err error) {
	key := hostsPrefix + a.host + removeSuffix
	t, err := r.Client.Txn(ctx).If(append(more, l.Held(), clientv3.Compare(clientv3.ModRevision(key), "=", a.rev))...).
		Then(clientv3.OpPut(key, next.write())).Else(clientv3.OpTxn([]clientv3.Cmp{l.Held()}, nil, []clientv3.Op{clientv3.OpGet(key, clientv3.WithCountOnly())})).Commit()
	switch {
	case err != nil:
		return 0, fmt.Errorf("etcd: write %s: %w", key, err)
	case t.Succeeded:
		return t.Header.Revision, nil
	case !t.Responses[0].GetResponseTxn().Succeeded:
		return 0, fmt.Errorf("etcd: write %s: %w", key, ErrLost)
	}
	return 0, fmt.Errorf("etcd: write %s: it was changed meanwhile, or the Lease was", key)
}

// say logs what is new of a host.
func (r *Remover) say(host, what string, attrs ...any) {
	text := fmt.Sprint(append([]any{what}, attrs...)...)
	if r.said[host] == text {
		return
	}
	r.said[host] = text
	if what != "" {
		r.Log.Info(what, append([]any{"host", host}, attrs...)...)
	}
}
