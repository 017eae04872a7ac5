package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"

	"suffrage/fitness"
	"suffrage/membership"
)

// MaxOrder bounds an order's JSON, in bytes: the largest honest one has 4 KiB.
const MaxOrder = 64 << 10

// Order is one verb for the etcd server of one host: SaveSnapshot, StartMember,
// Fence, Unfence, Retire or Regrade.
type Order struct {
	Verb membership.Verb `json:"verb"`
	// Term is that of the Lease under which it was given, 1 or more.
	Term      uint64 `json:"term"`
	Operation string `json:"operation"`
	// Member is the ID that it is about; StartMember joins as that one. With none
	// the server adds itself, as K3s's does.
	Member string `json:"member,omitempty"`
	// Peers are the names and peer URLs of all members, the newcomer among them.
	// Only StartMember has them, and where K3s is, Retire: there they are of the
	// servers at which the host is to join.
	Peers map[string]string `json:"peers,omitempty"`
	// To is the grade of Regrade.
	To fitness.Grade `json:"to,omitempty"`
}

func (o Order) String() string {
	return fmt.Sprintf("%s for operation %s, term %d", o.Verb, o.Operation, o.Term)
}

var (
	operationForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)
	memberForm    = regexp.MustCompile(`^[0-9a-f]{1,16}$`)
	labelForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// DecodeOrder reads exactly one order: no other key, nothing behind it.
func DecodeOrder(data []byte) (Order, error) {
	var o Order
	if len(data) > MaxOrder {
		return o, fmt.Errorf("host: an order of %d bytes, at most %d", len(data), MaxOrder)
	}
	if err := strict(data, &o); err != nil {
		return o, fmt.Errorf("host: order: %w", err)
	}
	return o, o.Validate()
}

func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more after its end")
	}
	return nil
}

// Validate says what cannot be an order to any host.
func (o Order) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("host: order: %s", fmt.Sprintf(format, args...))
	}
	if (o.Verb == membership.Regrade) != (o.To != "") || o.To != "" && o.To != fitness.Full && o.To != fitness.EtcdOnly {
		return bad("%s with the grade %.40q: %s or %s for %s, none for any other", o.Verb, o.To, fitness.Full, fitness.EtcdOnly, membership.Regrade)
	}
	switch o.Verb {
	case membership.SaveSnapshot, membership.Fence, membership.Unfence, membership.Regrade:
		if len(o.Peers) > 0 {
			return bad("%s has no peers", o.Verb)
		}
	case membership.Retire:
	case membership.StartMember:
		if len(o.Peers) == 0 {
			return bad("%s with no peers: 1 to %d are needed", o.Verb, fitness.MaxVoters)
		}
	default:
		return bad("%.40q is not a verb of a host", o.Verb)
	}
	switch {
	case len(o.Peers) > fitness.MaxVoters:
		return bad("%s with %d peers, at most %d", o.Verb, len(o.Peers), fitness.MaxVoters)
	case o.Term == 0:
		return bad("term 0: terms begin at 1")
	case !operationForm.MatchString(o.Operation):
		return bad("operation %.80q: 1 to 64 letters, digits and . _ : -", o.Operation)
	case o.Member != "" && !memberForm.MatchString(o.Member):
		return bad("member %.40q: want an ID in hexadecimal", o.Member)
	}
	for name, peer := range o.Peers {
		if !labelForm.MatchString(name) || !peerURL(peer) {
			return bad("peer %.80q at %.200q: want a host's name and https://address:port", name, peer)
		}
	}
	return nil
}

func peerURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= 200 && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.Port() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == "" && (u.Path == "" || u.Path == "/")
}
