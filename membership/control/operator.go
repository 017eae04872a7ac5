package control

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"suffrage/fitness"
	"suffrage/membership"
)

// Journal is the open operation, in the Lease's record: whoever takes the Lease
// learns of unfinished work in the same act.
type Journal interface {
	// Save writes the operation down, nil for none, only while the Lease is held.
	Save(ctx context.Context, op *membership.Operation) error
	// Check is asked right before each change: an error means that the Lease may
	// not be held any more, and nothing may be done.
	Check(ctx context.Context) error
	// Term is the Lease's, sent with every order.
	Term() uint64
}

// Members changes etcd's membership. A call that ended without an answer is
// ErrUnknown: it may have been done.
type Members interface {
	AddLearner(ctx context.Context, peerURL string) error
	Promote(ctx context.Context, id string) error
	MoveLeader(ctx context.Context, to string) error
	Remove(ctx context.Context, id string) error
}

// Hosts gives an order to the agent on a host, who refuses a lower Term than it
// has seen. Orders can be repeated.
type Hosts interface {
	Order(ctx context.Context, host string, o Order) error
}

// Order is one of an agent's closed list of verbs: SaveSnapshot, StartMember,
// Fence, Unfence, Retire and Regrade.
type Order struct {
	Verb      membership.Verb `json:"verb"`
	Term      uint64          `json:"term"`
	Operation string          `json:"operation"`
	// Member is the ID that StartMember joins with, none where the server adds
	// itself; Peers are the names and peer URLs of all members, the newcomer among
	// them. In the k3s flavour, and of Retire there alone, they are of the servers at
	// which the host is to join, of which it takes any.
	Member string            `json:"member,omitempty"`
	Peers  map[string]string `json:"peers,omitempty"`
	// To is the grade of Regrade.
	To fitness.Grade `json:"to,omitempty"`
}

// Removals keeps the annotations by which removals are asked for. A request is
// written only while the Lease is held with its Term. Whoever acts on it reads
// it, which is never while it is Held, reads it again right before, has ended its call within 20 seconds of that, and at
// that moment asks the same as the operation did: the mode is active; the
// operation is open and has not turned back; the members are those from before
// and the newcomer; name, address and ID are this member's; it does not lead;
// all voters that stay answer, and are three at least; or else the operation is
// the removal of a dead voter, and this is that one and does not answer.
type Removals interface {
	Request(ctx context.Context, term uint64, r membership.Removal) error
	Withdraw(ctx context.Context, host, operation string) error
}

// History keeps ended operations, by ID: recording one again replaces it. It is
// written only while the Lease is held with its Term.
type History interface {
	Record(ctx context.Context, term uint64, op membership.Operation) error
}

// ErrUnknown: the call ended without an answer and may have been carried out.
// The next round looks; nothing is repeated blindly.
var ErrUnknown = errors.New("control: no answer; it may have been done")

// Operator carries out decisions, one act a round. It keeps nothing but why its
// newest act failed: what is to be done next is decided anew from what is, by
// this controller or the next.
type Operator struct {
	Journal  Journal
	Members  Members
	Hosts    Hosts
	Removals Removals
	History  History
	// By is who asks for the operations of this operator, but for those that the
	// owner requests.
	By string
	// ClearRequest takes away the owner's request, only while the Lease is held;
	// one that is gone already is no error.
	ClearRequest func(ctx context.Context, r membership.Request) error
	// Peer gives the peer URL that a host will have as a member.
	Peer func(host string) string
	// Failed is the newest act where it had an error, for the next decision.
	Failed *membership.Failure
	// Point is called at each named place where a process may die; tests end it
	// there. Nil otherwise.
	Point func(name string)
}

// Act carries out one decision. An error ends nothing by itself: if the Lease
// is lost the caller is told by the Lease, and anything else is looked at again
// in the next round. The context has to end with the Lease: a process that was
// frozen between the check and the call then makes no call.
func (o *Operator) Act(ctx context.Context, in membership.Inputs, d membership.Decision) error {
	o.Failed = nil
	switch {
	case d.Mode != membership.Active:
		return nil
	case d.Operation == nil:
		return o.begin(ctx, in, d)
	case d.Step == nil || d.Step.Verb == membership.Wait:
		return o.save(ctx, in.Open, d.Operation)
	case d.Step.Verb == membership.Finish:
		return o.finish(ctx, in, d)
	}
	// Intent first: whoever comes after has to know what may have been done.
	if err := o.save(ctx, in.Open, d.Operation); err != nil {
		return err
	}
	if err := o.Journal.Check(ctx); err != nil {
		return err
	}
	o.point("before " + string(d.Step.Verb))
	err := o.do(ctx, in, d)
	o.point("after " + string(d.Step.Verb))
	o.Failed = failure(*d.Operation, *d.Step, err)
	if err != nil {
		return fmt.Errorf("control: operation %s: %s: %w", d.Operation.ID, d.Step, err)
	}
	return nil
}

// maxFailure bounds what is kept of an error, which may quote another host's.
const maxFailure = 500

// failure is an act that had an error, nil for none.
func failure(op membership.Operation, act membership.Act, err error) *membership.Failure {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) > maxFailure {
		text = strings.ToValidUTF8(text[:maxFailure], "") + "…"
	}
	return &membership.Failure{Operation: op.ID, Verb: act.Verb, Host: act.Host, Error: text}
}

// begin opens an operation for a plan, and writes down the figures of those that
// ended, once they are there.
func (o *Operator) begin(ctx context.Context, in membership.Inputs, d membership.Decision) error {
	for _, ended := range in.Operations {
		if m, ok := membership.Measured(in, ended); ok {
			if err := o.record(ctx, m); err != nil {
				return err
			}
		}
	}
	if d.Kind != membership.Planned {
		return nil
	}
	peer := ""
	if d.Plan.In != "" {
		peer = o.Peer(d.Plan.In)
	}
	op := membership.Begin(in, *d.Plan, o.Journal.Term(), o.By, peer)
	return o.save(ctx, nil, &op)
}

// save writes the operation down if it says something else than before.
func (o *Operator) save(ctx context.Context, was, op *membership.Operation) error {
	if was != nil && op != nil && reflect.DeepEqual(was, op) {
		return nil
	}
	o.point("before journal")
	err := o.Journal.Save(ctx, op)
	o.point("after journal")
	return err
}

// finish records first: an operation that is in history and in the journal is
// finished again, one that is in neither would be forgotten.
func (o *Operator) finish(ctx context.Context, in membership.Inputs, d membership.Decision) error {
	if err := o.record(ctx, membership.End(in, *d.Operation, d.Step.Outcome)); err != nil {
		return err
	}
	return o.save(ctx, in.Open, nil)
}

func (o *Operator) record(ctx context.Context, ended membership.Operation) error {
	if err := o.Journal.Check(ctx); err != nil {
		return err
	}
	o.point("before record")
	err := o.History.Record(ctx, o.Journal.Term(), ended)
	o.point("after record")
	if err != nil {
		return fmt.Errorf("control: record operation %s: %w", ended.ID, err)
	}
	return nil
}

func (o *Operator) do(ctx context.Context, in membership.Inputs, d membership.Decision) error {
	op, a := *d.Operation, *d.Step
	order := Order{Verb: a.Verb, Term: o.Journal.Term(), Operation: op.ID, Member: a.Member}
	switch a.Verb {
	case membership.AddLearner:
		return o.Members.AddLearner(ctx, a.Peer)
	case membership.Promote:
		return o.Members.Promote(ctx, a.Member)
	case membership.MoveLeader:
		return o.Members.MoveLeader(ctx, a.Member)
	case membership.RemoveMember:
		return o.Members.Remove(ctx, a.Member)
	case membership.AnnounceRemoval, membership.RequestRemoval:
		return o.Removals.Request(ctx, o.Journal.Term(), membership.Removal{Host: a.Host, Member: a.Member, Operation: op.ID, At: in.Now, Held: a.Verb == membership.AnnounceRemoval})
	case membership.WithdrawRemoval:
		return o.Removals.Withdraw(ctx, a.Host, op.ID)
	case membership.StartMember:
		order.Peers = peers(in.View)
		if in.Policy.Flavour == membership.K3s {
			order.Peers = servers(in.View, d)
		}
		order.Peers[a.Host] = a.Peer
		return o.Hosts.Order(ctx, a.Host, order)
	case membership.Retire:
		if in.Policy.Flavour == membership.K3s { // where it finds a server, as a host that is none
			order.Peers = servers(in.View, d)
		}
		return o.Hosts.Order(ctx, a.Host, order)
	case membership.SaveSnapshot, membership.Fence, membership.Unfence, membership.Regrade:
		order.To = a.To
		return o.Hosts.Order(ctx, a.Host, order)
	}
	panic("control: no such verb: " + string(a.Verb))
}

// peers are the peer URLs of all members that have started, by name.
func peers(v membership.View) map[string]string {
	out := map[string]string{}
	for _, m := range v.Members {
		if m.Name != "" && len(m.PeerURLs) > 0 {
			out[m.Name] = m.PeerURLs[0]
		}
	}
	return out
}

func (o *Operator) point(name string) {
	if o.Point != nil {
		o.Point(name)
	}
}
