package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/lease"
	"suffrage/membership"
	"suffrage/membership/control"
)

// removeSuffix follows a host's name: /suffrage/hosts/<name>/remove. The names
// of keys and of what is in them are stable; docs/annotations.md has them.
const removeSuffix = "/remove"

// maxRefused bounds the reason in an annotation, in bytes.
const maxRefused = 1 << 10

// ErrActing means that the removal controller has begun: the removal may be done
// at any moment, or be refused, and until then it cannot be withdrawn.
var ErrActing = errors.New("etcd: the removal is being acted on; look again")

// Annotation asks for the removal of a host's member.
type Annotation struct {
	// Member, Name and Peer are the member's ID, its name and one of its peer
	// URLs: all three have to fit, and the host's name too.
	Member string `json:"member"`
	Name   string `json:"name"`
	Peer   string `json:"peer"`
	// Operation asks for it, under this Term of the Lease.
	Operation string     `json:"operation"`
	Term      lease.Term `json:"term"`
	// At is when it was asked, by the clock of who asked.
	At time.Time `json:"at"`
	// Held: the removal is announced and not to be acted on yet.
	Held bool `json:"held,omitempty"`
	// Acting is the host whose removal controller has begun to act.
	Acting string `json:"acting,omitempty"`
	// Refused is why the removal controller will not act on it, for ever: ask
	// again, with a new annotation.
	Refused string `json:"refused,omitempty"`
}

func readAnnotation(data []byte) (a Annotation, err error) {
	if err := strict(data, &a); err != nil {
		return Annotation{}, err
	}
	if a.Member == "" || a.Name == "" || a.Peer == "" || a.Operation == "" || a.Term == 0 || a.At.IsZero() {
		return Annotation{}, errors.New("member, name, peer, operation, term and at are all needed")
	}
	return a, nil
}

func (a Annotation) write() string {
	a.Refused = printable(a.Refused, maxRefused)
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // plain fields
	}
	return string(b)
}

// printable keeps a reason short and on one line: it goes into texts.
func printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	for len(s) > most {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

// annotated is one annotation as it stands in etcd.
type annotated struct {
	Annotation
	host string
	rev  int64
	bad  error // it cannot be read
}

func annotations(ctx context.Context, kv clientv3.KV) ([]annotated, error) {
	g, err := kv.Get(ctx, hostsPrefix, clientv3.WithPrefix(), clientv3.WithLimit(2*maxMarks))
	if err != nil {
		return nil, fmt.Errorf("etcd: read removals: %w", err)
	}
	if g.More {
		return nil, fmt.Errorf("etcd: read removals: more than %d keys under %s", 2*maxMarks, hostsPrefix)
	}
	var out []annotated
	for _, kv := range g.Kvs {
		host, ok := strings.CutSuffix(strings.TrimPrefix(string(kv.Key), hostsPrefix), removeSuffix)
		if !ok || strings.Contains(host, "/") {
			continue
		}
		a := annotated{host: host, rev: kv.ModRevision}
		a.Annotation, a.bad = readAnnotation(kv.Value)
		out = append(out, a)
	}
	return out, nil
}

// Removals reads those that are asked for, by host name, for the View. One that
// cannot be read belongs to no operation and is refused: it is the owner's to
// take away.
func Removals(ctx context.Context, kv clientv3.KV) ([]membership.Removal, error) {
	all, err := annotations(ctx, kv)
	if err != nil {
		return nil, err
	}
	var out []membership.Removal
	for _, a := range all {
		r := membership.Removal{Host: a.host, Member: a.Member, Operation: a.Operation, At: a.At, Held: a.Held, Refused: a.Refused}
		if a.bad != nil {
			r.Refused = printable(fmt.Sprintf("%s cannot be read: %v", hostsPrefix+a.host+removeSuffix, a.bad), maxRefused)
		}
		out = append(out, r)
	}
	return out, nil
}

// Requester asks for removals, only while the Lease is held with its Term.
type Requester struct {
	kv    clientv3.KV
	right Right
	term  lease.Term
	peer  func(host string) string
}

var _ control.Removals = (*Requester)(nil)

// NewRequester uses a client, which stays the caller's. peer gives the peer URL
// that a host has as a member, from the roster: not from etcd, since it is there
// to be compared with what etcd says.
func NewRequester(kv clientv3.KV, l Lease, term lease.Term, peer func(host string) string) *Requester {
	return &Requester{kv, l.Right(term), term, peer}
}

// Request asks for the removal of a host's member, whose name is the host's, or
// announces it where it is to be held. The same asked twice is asked once, and what
// is asked for is not held any more. One of the same operation that was refused, or
// is of an earlier Term, is asked anew; one of another operation is left alone.
func (q *Requester) Request(ctx context.Context, term uint64, r membership.Removal) error {
	if lease.Term(term) != q.term {
		return fmt.Errorf("etcd: request removal of %s: %w: asked with term %d, held with %d", r.Host, lease.ErrLost, term, q.term)
	}
	a := Annotation{Member: r.Member, Name: r.Host, Peer: q.peer(r.Host), Operation: r.Operation, Term: q.term, At: r.At.UTC(), Held: r.Held}
	if _, err := readAnnotation([]byte(a.write())); err != nil || strings.Contains(r.Host, "/") {
		return fmt.Errorf("etcd: request removal of %q: incomplete: %+v: %w", r.Host, a, err)
	}
	key := hostsPrefix + r.Host + removeSuffix
	err := rightly(ctx, q.kv, q.right, key, func(value []byte) ([]clientv3.Op, error) {
		put := []clientv3.Op{clientv3.OpPut(key, a.write())}
		if value == nil {
			return put, nil
		}
		old, err := readAnnotation(value)
		switch {
		case err != nil:
			return nil, fmt.Errorf("there is one that cannot be read: %w", err)
		case old.Operation != a.Operation:
			return nil, fmt.Errorf("operation %s asked for it at %s and did not take it back", old.Operation, old.At.Format(time.RFC3339))
		case old.Acting != "":
			return nil, ErrActing
		case old.Member == a.Member && old.Peer == a.Peer && old.Term == a.Term && old.Refused == "" && (a.Held || !old.Held):
			return nil, nil
		}
		return put, nil
	})
	if err != nil {
		return fmt.Errorf("etcd: request removal of %s: %w", r.Host, err)
	}
	return nil
}

// Withdraw takes the request of an operation back, and reads it back: on nil
// there is none and the member will not be removed because of it. It is
// ErrActing while the removal controller may be at it.
func (q *Requester) Withdraw(ctx context.Context, host, operation string) error {
	return withdraw(ctx, q.kv, q.right, host, func(a Annotation, bad error) error {
		if bad != nil {
			return fmt.Errorf("it cannot be read: %w", bad)
		}
		if a.Operation != operation {
			return fmt.Errorf("it is of operation %s, not of %s", a.Operation, operation)
		}
		return nil
	})
}

// WithdrawStale is the owner's word that takes back what an operation left
// behind. open is the operation under way, "" when there is none: it takes back
// its own.
func WithdrawStale(ctx context.Context, kv clientv3.KV, host, open string) error {
	return withdraw(ctx, kv, nil, host, func(a Annotation, _ error) error {
		if open != "" && a.Operation == open {
			return fmt.Errorf("operation %s is under way and takes it back itself", open)
		}
		return nil
	})
}

func withdraw(ctx context.Context, kv clientv3.KV, right Right, host string, may func(Annotation, error) error) error {
	key := hostsPrefix + host + removeSuffix
	err := rightly(ctx, kv, right, key, func(value []byte) ([]clientv3.Op, error) {
		if value == nil {
			return nil, nil
		}
		a, bad := readAnnotation(value)
		if err := may(a, bad); err != nil {
			return nil, err
		}
		if a.Acting != "" {
			return nil, ErrActing
		}
		return []clientv3.Op{clientv3.OpDelete(key)}, nil
	})
	if err != nil {
		return fmt.Errorf("etcd: withdraw removal of %s: %w", host, err)
	}
	g, err := kv.Get(ctx, key)
	switch {
	case err != nil:
		return fmt.Errorf("etcd: withdraw removal of %s: read back: %w", host, err)
	case len(g.Kvs) > 0:
		return fmt.Errorf("etcd: withdraw removal of %s: somebody asked for it again", host)
	}
	return nil
}
