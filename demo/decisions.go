package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

const (
	// maxDecision bounds what a controller may answer, in bytes.
	maxDecision = 4 << 20
	// decisionTimeout bounds one question.
	decisionTimeout = 2 * time.Second
)

// decisions asks the controllers what they decided last.
type decisions struct {
	urls   []string
	client *http.Client
}

func newDecisions(f *Fleet) *decisions {
	d := &decisions{client: &http.Client{Timeout: decisionTimeout, Transport: &http.Transport{Proxy: nil}}}
	for _, h := range f.Hosts {
		if h.Controller {
			d.urls = append(d.urls, fmt.Sprintf("http://%s/decision", at(h.Real, ControllerMetricsPort)))
		}
	}
	return d
}

// latest gives the newest decision that any controller tells. The one that
// stands by has none.
func (d *decisions) latest(ctx context.Context) (membership.Decision, error) {
	var newest membership.Decision
	var errs []error
	for _, url := range d.urls {
		got, err := d.ask(ctx, url)
		if err != nil {
			errs = append(errs, err)
		} else if got.At.After(newest.At) {
			newest = got
		}
	}
	if newest.At.IsZero() {
		return newest, fmt.Errorf("demo: no controller tells a decision: %w", errors.Join(errs...))
	}
	return newest, nil
}

func (d *decisions) ask(ctx context.Context, url string) (membership.Decision, error) {
	var out membership.Decision
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return out, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDecision))
	if err != nil {
		return out, fmt.Errorf("%s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return out, fmt.Errorf("%s: %s: %.200s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("%s: %w", url, err)
	}
	return out, nil
}

func (d *decisions) close() { d.client.CloseIdleConnections() }

// held measures for how long a decision has been the same but for its figures.
type held struct {
	key   string
	at    time.Time // of the newest decision
	since time.Time
	fresh time.Time
}

// staleDecision is the age from which a decision that no round confirms any
// more stops counting: its controller is gone or hangs.
const staleDecision = 5 * time.Second

// see takes what was decided, as seen at now, and gives for how long it has
// held.
func (h *held) see(d membership.Decision, now time.Time) time.Duration {
	if d.At.After(h.at) {
		h.at, h.fresh = d.At, now
	}
	if key := d.Key(); key != h.key || now.Sub(h.fresh) > staleDecision {
		h.key, h.since = key, now
	}
	return now.Sub(h.since)
}

// counts reports whether a decision says more than that the windows are not
// full: a plan, or a refusal about anything else.
func counts(d membership.Decision) bool {
	switch d.Kind {
	case membership.Planned:
		return true
	case membership.Refused:
		for _, r := range d.Refusals {
			if !r.Code.AboutWindows() {
				return true
			}
		}
	}
	return false
}

// allFit reports whether nothing needs doing and every host is fit, standbys
// among them.
func allFit(d membership.Decision) bool {
	for _, v := range d.Verdicts {
		if v.Status != fitness.Fit {
			return false
		}
	}
	return d.Kind == membership.Steady && len(d.Verdicts) == hostCount
}

// line is a decision in one line.
func line(d membership.Decision) string {
	switch d.Kind {
	case membership.Steady:
		return "steady: nothing needs doing"
	case membership.Planned:
		return fmt.Sprintf("would %s, because %s", d.Plan, d.Plan.Why)
	case membership.StepNext:
		return d.Step.Step + ": " + d.Step.String()
	case membership.Refused:
		return strings.Join(reasons(d.Refusals), "; ")
	}
	return string(d.Kind)
}

// reasons are refusals as text; those about windows, of which there is one per
// host, in one phrase for each code.
func reasons(refusals []membership.Refusal) []string {
	var said, filling, holding []string
	for _, r := range refusals {
		switch r.Code {
		case membership.SamplesMissing:
			filling = append(filling, r.Subject)
		case membership.NotHeld:
			holding = append(holding, r.Subject)
		default:
			said = append(said, r.String())
		}
	}
	if len(filling) > 0 {
		said = append(said, fmt.Sprintf("%s: the windows of %s fill", membership.SamplesMissing, strings.Join(filling, ", ")))
	}
	if len(holding) > 0 {
		said = append(said, fmt.Sprintf("%s: what is so of %s has not been so for a whole window yet", membership.NotHeld, strings.Join(holding, ", ")))
	}
	return said
}
