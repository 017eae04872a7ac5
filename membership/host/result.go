package host

import (
	"errors"
	"fmt"

	"suffrage/membership"
)

// Outcome is how an order ended.
type Outcome string

const (
	// Done: it is so, and on the disk.
	Done Outcome = "done"
	// Refused: nothing was changed.
	Refused Outcome = "refused"
	// Failed: it was begun and not brought to its end. Given again it goes on.
	Failed Outcome = "failed"
	// UnderWay: it goes on without whoever asked.
	UnderWay Outcome = "under-way"
)

// Codes of refusals and failures, besides those that package membership has.
const (
	// StaleTerm: a newer holder of the Lease has spoken to this host.
	StaleTerm membership.Code = "stale-term"
	// LateOrder: another order was begun since this one was made.
	LateOrder membership.Code = "late-order"
	// OrderUnderWay: one order at a time.
	OrderUnderWay membership.Code = "order-under-way"
	// NoServer: the agent there does not run an etcd server (agent.unit).
	NoServer membership.Code = "no-server"
	// BadOrder: it cannot be an order to this host.
	BadOrder membership.Code = "bad-order"
	// ServerRuns: the etcd server runs already, as another member.
	ServerRuns membership.Code = "server-runs"
	// DatastoreInUse: a process that the unit does not know holds the datastore.
	DatastoreInUse membership.Code = "datastore-in-use"
	// PeerAddressChanged: the members' list has another peer URL for this host
	// than its settings.
	PeerAddressChanged membership.Code = "peer-address-changed"
)

// Result is the answer to an order.
type Result struct {
	Outcome Outcome         `json:"outcome"`
	Code    membership.Code `json:"code,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	// Term is the highest that the host has seen; 0 where it does not say.
	Term uint64 `json:"term,omitempty"`
}

// OrderError is an order that was not done.
type OrderError struct {
	Host   string
	Order  Order
	Result Result
}

func (e *OrderError) Error() string {
	code := ""
	if e.Result.Code != "" {
		code = string(e.Result.Code) + ": "
	}
	return fmt.Sprintf("host %s: %s: %s: %s%s", e.Host, e.Order, e.Result.Outcome, code, e.Result.Reason)
}

// Unwrap gives a *LowerTermError where that is the reason.
func (e *OrderError) Unwrap() error {
	if e.Result.Code == StaleTerm {
		return &LowerTermError{Seen: e.Result.Term, Got: e.Order.Term}
	}
	return nil
}

// Err is nil for what is done, else an *OrderError.
func (r Result) Err(host string, o Order) error {
	if r.Outcome == Done {
		return nil
	}
	return &OrderError{host, o, r}
}

// Refuse is a refusal's answer.
func Refuse(c membership.Code, format string, args ...any) Result {
	return Result{Outcome: Refused, Code: c, Reason: fmt.Sprintf(format, args...)}
}

// coded is an error with a code: a refusal, or a failure on the way.
type coded struct {
	outcome Outcome
	code    membership.Code
	err     error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

func refusal(c membership.Code, format string, args ...any) error {
	return &coded{Refused, c, fmt.Errorf(format, args...)}
}

func failure(c membership.Code, format string, args ...any) error {
	return &coded{Failed, c, fmt.Errorf(format, args...)}
}

// resultOf makes the answer of what a verb returned.
func resultOf(err error) Result {
	if err == nil {
		return Result{Outcome: Done}
	}
	if c, ok := errors.AsType[*coded](err); ok {
		return Result{Outcome: c.outcome, Code: c.code, Reason: err.Error()}
	}
	return Result{Outcome: Failed, Reason: err.Error()}
}
