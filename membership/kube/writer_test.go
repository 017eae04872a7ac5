package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	events "k8s.io/api/events/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/kube"
	"suffrage/mesh-tests/kubetest"
)

const roster = "h1 h2 h3 h4"

// fleetOf is a round of a fleet of four hosts, the first three of which vote; h1
// leads.
func fleetOf(at time.Time) (membership.Inputs, membership.Decision) {
	in := membership.Inputs{Now: at, Policy: membership.Policy{Period: fitness.Duration(3 * time.Second), StallTime: fitness.Duration(5 * time.Minute)}}
	d := membership.Decision{Kind: membership.Steady, At: at, Since: at, Mode: membership.DryRun}
	for i, h := range strings.Fields(roster) {
		in.View.Hosts = append(in.View.Hosts, membership.Host{Name: h})
		d.Verdicts = append(d.Verdicts, fitness.Verdict{Host: h, Status: fitness.Fit})
		if i < 3 {
			in.View.Members = append(in.View.Members, membership.Member{ID: fmt.Sprint(i + 1), Host: h, Responding: true, Leader: "1"})
		}
	}
	in.Previous = d.Remember()
	return in, d
}

// unfit makes a host unfit.
func unfit(d *membership.Decision, host string) {
	for i := range d.Verdicts {
		if d.Verdicts[i].Host == host {
			d.Verdicts[i] = fitness.Verdict{Host: host, Status: fitness.Unfit, Reasons: []fitness.Reason{{Signal: fitness.RTT, Peer: "h1", Band: fitness.Over}}}
		}
	}
}

// teller runs a Writer until the test ends, or until stop.
func teller(t *testing.T, n *kube.Nodes, pace time.Duration) (w *kube.Writer, log *lines, stop func()) {
	t.Helper()
	log = &lines{}
	w = kube.NewWriter(n, "h1", slog.New(slog.NewTextHandler(log, nil)))
	w.Pace = pace
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return w, log, stop
}

func annotations(t *testing.T, s *kubetest.Server, node string) map[string]string {
	t.Helper()
	var o meta.PartialObjectMetadata
	if err := json.Unmarshal(s.Get(t, nodes+"/"+node), &o); err != nil {
		t.Fatal(err)
	}
	return o.Annotations
}

// says waits until a Node has these annotations of ours, and no others but as-of.
func says(t *testing.T, s *kubetest.Server, node string, want map[string]string) {
	t.Helper()
	until(t, func() error {
		got := annotations(t, s, node)
		for _, name := range kube.Reported() {
			if name != kube.AsOf && got[name] != want[name] {
				return fmt.Errorf("Node %s: %s is %q, want %q", node, name, got[name], want[name])
			}
		}
		if _, err := time.Parse(time.RFC3339, got[kube.AsOf]); (err == nil) != (want != nil) {
			return fmt.Errorf("Node %s: %s is %q", node, kube.AsOf, got[kube.AsOf])
		}
		return nil
	})
}

// told are the Events on a Node as it is now, oldest first, each as "Reason note ×count".
func told(t *testing.T, s *kubetest.Server, node string) []string {
	t.Helper()
	var o meta.PartialObjectMetadata
	if err := json.Unmarshal(s.Get(t, nodes+"/"+node), &o); err != nil {
		t.Fatal(err)
	}
	var list events.EventList
	if err := json.Unmarshal(s.Get(t, "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3D"+node), &list); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(list.Items, func(a, b events.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var all []string
	for _, e := range list.Items {
		if e.Regarding.UID != o.UID {
			continue
		}
		text := e.Reason + " " + e.Note
		if e.Series != nil {
			text += fmt.Sprintf(" ×%d", e.Series.Count)
		}
		if e.ReportingController != kube.Reporter {
			t.Errorf("an Event of %q, regarding %+v", e.ReportingController, e.Regarding)
		}
		all = append(all, text)
	}
	return all
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestWriter follows one fleet: what stands on its Nodes, and what Events tell.
func TestWriter(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t)
	for _, h := range strings.Fields(roster) {
		s.Create(t, nodes, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"%s","annotations":{"suffrage.io/eligible":"true","team":"blue"}}}`, h))
	}
	// A host that left the roster, or whose Node had another name before.
	s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"old","annotations":{"suffrage.io/verdict":"fit","suffrage.io/as-of":"2026-01-01T00:00:00Z","suffrage.io/pinned":"true"}}}`)
	n, err := kube.New(s.Config(kubetest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	w, _, stop := teller(t, n, 20*time.Millisecond)
	now := time.Now().UTC().Truncate(time.Second)

	in, d := fleetOf(now)
	w.Offer(in, d)
	says(t, s, "h1", map[string]string{kube.Verdict: "fit", kube.Role: "leader", kube.Decision: "steady"})
	in.View.Hosts[0].Reachable = true
	for _, g := range []fitness.Grade{fitness.Full, fitness.EtcdOnly} {
		in.View.Hosts[0].Facts.Server = &fitness.ServerFacts{Grade: g}
		w.Offer(in, d)
		says(t, s, "h1", map[string]string{kube.Verdict: "fit", kube.Role: "leader", kube.Grade: string(g), kube.Decision: "steady"})
	}
	in.View.Hosts[0].Facts.Server = nil
	w.Offer(in, d)
	says(t, s, "h1", map[string]string{kube.Verdict: "fit", kube.Role: "leader", kube.Decision: "steady"})
	says(t, s, "h4", map[string]string{kube.Verdict: "fit", kube.Role: "standby"})
	says(t, s, "old", nil)
	if a := annotations(t, s, "old"); a["suffrage.io/pinned"] != "true" {
		t.Errorf("the owner's mark went with the rest: %v", a)
	}
	if a := annotations(t, s, "h1"); a["suffrage.io/eligible"] != "true" || a["team"] != "blue" {
		t.Errorf("what others wrote is gone: %v", a)
	}
	if got := told(t, s, "h1"); got != nil {
		t.Errorf("Events %q although nothing changed", got)
	}

	// It turns unfit, and a plan names it and the standby.
	in, d = fleetOf(now.Add(time.Minute))
	unfit(&d, "h3")
	d.Kind, d.Plan = membership.Planned, &membership.Plan{Out: "h3", In: "h4", Why: "h3 is slow"}
	w.Offer(in, d)
	plan := map[string]string{kube.Verdict: "fit", kube.Role: "standby", kube.Decision: "would swap h3 → h4 (dry-run)"}
	says(t, s, "h4", plan)
	if a := annotations(t, s, "h3"); a[kube.Verdict] != "unfit" || !strings.HasPrefix(a[kube.VerdictReason], "rtt to h1") || a[kube.AsOf] != in.Now.Format(time.RFC3339) {
		t.Errorf("h3 has %v", a)
	}
	until(t, func() error {
		got := told(t, s, "h3")
		if len(got) != 2 || !strings.HasPrefix(got[0]+got[1], "DecisionChanged would swap h3 → h4 (dry-run): h3 is slowVerdictChanged unfit: rtt to h1") &&
			!strings.HasPrefix(got[1]+got[0], "DecisionChanged would swap h3 → h4 (dry-run): h3 is slowVerdictChanged unfit: rtt to h1") {
			return fmt.Errorf("Events %q", got)
		}
		return nil
	})

	// Another controller leads: it says the same, and tells nothing again.
	stop()
	w, _, stop = teller(t, n, 20*time.Millisecond)
	op := membership.Operation{ID: "op-1", Out: "h3", In: "h4", Begun: now, Steps: []membership.StepRecord{
		{Name: "snapshot", Begun: now.Add(time.Second), Ended: now.Add(2 * time.Second)}, {Name: "join", Begun: now.Add(2 * time.Second)}}}
	in.Previous = d.Remember()
	d.Plan, d.Kind, d.Operation, d.Step = nil, membership.StepNext, &op, &membership.Act{Verb: membership.AddLearner, Host: "h4"}
	in.Previous.Key = d.Key()
	w.Offer(in, d)
	says(t, s, "h4", map[string]string{kube.Verdict: "fit", kube.Role: "standby", kube.Decision: "swap h3 → h4 is under way",
		kube.Operation: "swap h3 → h4: join since " + now.Add(2*time.Second).Format(time.RFC3339) + " (op-1)"})
	until(t, func() error {
		got := told(t, s, "h4")
		if !slices.Equal(got, []string{"StepBegun swap h3 → h4: snapshot (op-1)", "StepBegun swap h3 → h4: join (op-1)", "DecisionChanged would swap h3 → h4 (dry-run): h3 is slow"}) {
			return fmt.Errorf("Events %q", got)
		}
		return nil
	})
	stop()
	before := told(t, s, "h4")
	w, _, _ = teller(t, n, 20*time.Millisecond)
	w.Offer(in, d)
	ended := op
	ended.Outcome, ended.Ended = membership.Undone, now.Add(3*time.Minute)
	ended.TurnedBack = "h4 turned unfit"
	in, d = fleetOf(now.Add(4 * time.Minute))
	in.Operations = []membership.Operation{ended}
	w.Offer(in, d)
	says(t, s, "h4", map[string]string{kube.Verdict: "fit", kube.Role: "standby"})
	until(t, func() error {
		got := told(t, s, "h4")
		if len(got) != len(before)+2 || !slices.ContainsFunc(got, func(e string) bool { return e == "OperationEnded swap h3 → h4 undone (op-1): h4 turned unfit" }) {
			return fmt.Errorf("Events %q", got)
		}
		return nil
	})

	// Made anew it gets the same again, and one that is renamed takes nothing along.
	s.Delete(t, nodes+"/h4")
	s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"h4"}}`)
	s.Patch(t, nodes+"/h2", `{"metadata":{"annotations":{"suffrage.io/verdict":"great","suffrage.io/operation":"mine"}}}`)
	s.Delete(t, nodes+"/h1")
	s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"h1-new","annotations":{"suffrage.io/role":"leader"}}}`)
	in, d = fleetOf(now.Add(5 * time.Minute))
	unfit(&d, "h3")
	w.Offer(in, d)
	says(t, s, "h4", map[string]string{kube.Verdict: "fit", kube.Role: "standby"})
	says(t, s, "h2", map[string]string{kube.Verdict: "fit", kube.Role: "voter", kube.Decision: "steady"})
	says(t, s, "h1-new", nil)

	// A refusal that lasts is told on its host, or on every voter's.
	in, d = fleetOf(now.Add(time.Hour))
	d.Kind = membership.Refused
	d.Refusals = []membership.Refusal{
		{Code: membership.Pinned, Subject: "h3", Detail: "you pinned it", Next: "unpin it", Since: in.Now.Add(-20 * time.Minute)},
		{Code: membership.Paused, Kind: membership.Owner, Detail: "by anna", Next: "suffrage resume", Since: in.Now.Add(-11 * time.Minute)},
		{Code: membership.CooldownRunning, Detail: "young", Since: in.Now.Add(-9 * time.Minute)},
	}
	w.Offer(in, d)
	until(t, func() error {
		h2, h3 := strings.Join(told(t, s, "h2"), "\n"), strings.Join(told(t, s, "h3"), "\n")
		if !strings.Contains(h3, "RefusalLasts pinned(h3): you pinned it → unpin it") || !strings.Contains(h2, "RefusalLasts paused: by anna → suffrage resume") ||
			strings.Contains(h2, "RefusalLasts pinned") || strings.Contains(h2+h3, "RefusalLasts cooldown") {
			return fmt.Errorf("Events on h2 %s, on h3 %s", h2, h3)
		}
		return nil
	})

	// What swings is one Event with a count, and never more than the bound.
	for i := range 300 {
		in, d = fleetOf(now.Add(time.Hour + time.Duration(i+1)*3*time.Second))
		if i%2 == 0 {
			unfit(&d, "h2")
		}
		w.Offer(in, d)
	}
	until(t, func() error {
		got := told(t, s, "h2")
		if !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "VerdictChanged") && strings.Contains(e, " ×") }) {
			return fmt.Errorf("Events %q, want one that is counted", got)
		}
		return nil
	})
	if got := told(t, s, "h2"); len(got) > 10 {
		t.Errorf("%d Events: %q", len(got), got)
	}
}
