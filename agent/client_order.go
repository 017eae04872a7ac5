package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"suffrage/identity"
	"suffrage/membership/host"
)

// ErrUnknown means that an order ended without an answer, or goes on: it may have
// been carried out. Look; do not repeat it blindly.
var ErrUnknown = errors.New("agent: no answer to an order; it may have been carried out")

// Order gives an order to the agent of a host and waits for its end, as long as
// the context lasts. Nil means done. An order that was refused, or begun and not
// brought to its end, is a *host.OrderError (and a *host.LowerTermError where
// another holds the Lease); one without an answer is ErrUnknown; any other error
// means that it was not given.
func (c *Client) Order(ctx context.Context, name string, o host.Order) error {
	if err := o.Validate(); err != nil {
		return err
	}
	h, ok := c.roster().ByName(name)
	if !ok {
		return fmt.Errorf("agent: order to %s: the roster has no host of that name", name)
	}
	fail := func(err error) error {
		return fmt.Errorf("agent: order to host %s at %s: %s: %w", h.Name, h.AddrPort(), o, err)
	}
	var last orderState
	if err := c.talk(ctx, h, http.MethodGet, "/v1/order", url.Values{}, nil, &last); err != nil {
		return fail(c.explain(ctx, err, h))
	}
	body, err := json.Marshal(o)
	if err != nil {
		return fail(err)
	}
	var r host.Result
	if err := c.talk(ctx, h, http.MethodPost, "/v1/order", url.Values{"after": {last.Last}}, body, &r); err != nil {
		if status, ok := errors.AsType[*statusError](err); ok {
			return fail(status)
		}
		return fail(fmt.Errorf("%w: %w", ErrUnknown, c.explain(ctx, err, h)))
	}
	switch r.Outcome {
	case host.Done:
		return nil
	case host.UnderWay:
		return fail(ErrUnknown)
	case host.Refused, host.Failed:
		r.Reason = clip(r.Reason)
		return r.Err(name, o)
	}
	return fail(fmt.Errorf("%w: the answer's outcome is %.40q", ErrUnknown, r.Outcome))
}

// statusError is an answer of HTTP itself: nothing was begun.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("it answers %d: %s", e.code, e.text) }

// talk sends one small request and reads the answer.
func (c *Client) talk(ctx context.Context, h identity.RosterHost, method, path string, q url.Values, body []byte, into any) error {
	u := url.URL{Scheme: "https", Host: target(h), Path: path, RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	// No GetBody: a request whose connection broke is never sent a second time.
	req.GetBody = nil
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
		return &statusError{resp.StatusCode, clip(strings.TrimSpace(string(b)))}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, host.MaxOrder))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
