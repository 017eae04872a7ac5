package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"suffrage/identity"
	"suffrage/member/membertest"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/membership/kube"
	"suffrage/page"
	"suffrage/page/pagetest"
)

// What is said through the page is what the commands say, against a real etcd.
func TestPageOwner(t *testing.T) {
	m := membertest.New(t, membertest.Options{Size: 1})
	c := &cobra.Command{}
	c.Flags().String("config", newOwner(t, m.Members[0]).settings, "")
	f, err := openFleet(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close() })
	p := pageOwner{f, &pageSource{fleet: f, loop: &control.Loop{}, history: &page.History{}}}

	for _, c := range []struct {
		order      page.Order
		asks, says string // what is asked contains asks; an empty says means that it is refused so
	}{
		{page.Order{Verb: "pin", Host: "h1"}, "h1 is unmanaged, and becomes pinned: Never take the host's vote automatically. ", "h1 is pinned, said by anna"},
		{page.Order{Verb: "unpin", Host: "h1"}, "h1 is pinned, and becomes unmanaged: Allow the host's vote to be taken. ", "h1 is unmanaged"},
		{page.Order{Verb: "eligible", Host: "h1"}, "h1 is unmanaged, and becomes eligible: Allow the host a vote. ", "h1 is eligible"},
		{page.Order{Verb: "ineligible", Host: "h1"}, "h1 is eligible, and becomes ineligible: Do not allow", "h1 is ineligible"},
		{page.Order{Verb: "pause"}, "starts nothing new. An operation under way turns back", "paused, said by anna"},
		{page.Order{Verb: "resume"}, "may start operations again", "resumed, said by anna"},
		{page.Order{Verb: "pin", Host: "h9"}, `no host "h9"`, ""},
		{page.Order{Verb: "pin"}, "of which host", ""},
		{page.Order{Verb: "reset"}, "nobody does", ""},
		{page.Order{Verb: "swap", Host: "h1", In: "h9"}, `no host "h9"`, ""},
		{page.Order{Verb: "swap", Host: "h1", In: "h1"}, "", ""},
	} {
		q, err := p.Ask(t.Context(), c.order)
		if c.says == "" {
			if err == nil || !strings.Contains(err.Error(), c.asks) {
				t.Errorf("%s: asks %v, %v; want the error %q", c.order, q, err, c.asks)
			}
			continue
		}
		if err != nil || !strings.Contains(strings.Join(q.Lines, " "), c.asks) {
			t.Errorf("%s: asks %v, %v; want %q", c.order, q, err, c.asks)
		}
		if said, err := p.Do(t.Context(), c.order, "anna, through the page on h1 from 127.0.0.1:1", "to try"); err != nil || !strings.Contains(said, c.says) {
			t.Errorf("%s: says %q, %v; want %q", c.order, said, err, c.says)
		}
	}
	policy, err := etcd.LoadPolicy(t.Context(), f.client)
	if err != nil || policy.Paused == nil || policy.Paused.Value || !strings.HasPrefix(policy.Paused.By, "anna, through the page") || policy.Paused.Reason != "to try" {
		t.Errorf("%+v, %v", policy.Paused, err)
	}
	if _, err := p.Do(t.Context(), page.Order{Verb: "pause"}, "two\nlines", ""); err == nil {
		t.Error("two lines were taken")
	}

	// What a Node says stays, and whoever says otherwise here is told.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"h1","annotations":{"suffrage.io/pinned":"true"}}}]}`)
	}))
	t.Cleanup(api.Close)
	if f.nodes, err = kube.New(&rest.Config{Host: api.URL}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.nodes.Close)
	const onNode = "its Node has annotations too, and with them it is pinned: kubectl describe node h1"
	unpin := page.Order{Verb: "unpin", Host: "h1"}
	q, err := p.Ask(t.Context(), unpin)
	if lines := strings.Join(q.Lines, " "); err != nil || !strings.Contains(lines, onNode) || !strings.Contains(q.Key, onNode) {
		t.Errorf("asked: %q, %v", lines, err)
	}
	if said, err := p.Do(t.Context(), unpin, "anna", ""); err != nil || !strings.HasSuffix(said, "said by anna; "+onNode) {
		t.Errorf("said: %q, %v", said, err)
	}
	api.Close() // it was said all the same
	if said, err := p.Do(t.Context(), unpin, "anna", ""); err != nil || !strings.Contains(said, "said by anna; what its Node says cannot be read") {
		t.Errorf("said: %q, %v", said, err)
	}
	f.nodes = nil

	// A look of its own, since this controller leads nothing.
	l, err := p.source.Look(t.Context())
	if err != nil || l.Leads || l.Note == "" || len(l.Inputs.View.Members) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if again, err := p.source.Look(t.Context()); err != nil || !again.Inputs.Now.Equal(l.Inputs.Now) {
		t.Errorf("it looked twice in a round: %v", err)
	}
}

// What a swap would do is shown in dry-run too, with why nobody is asked for it.
func TestPageShowsASwapInDryRun(t *testing.T) {
	var hosts []identity.RosterHost
	for i := 1; i <= 5; i++ {
		key, err := identity.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, identity.RosterHost{Name: fmt.Sprintf("h%d", i), Address: netip.AddrFrom4([4]byte{100, 64, 0, byte(i)}), Port: 7400, Fingerprint: key.Fingerprint()})
	}
	roster, err := identity.NewRoster(hosts)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{Settings: DefaultSettings(), roster: roster}
	look := pagetest.Fleet{}.Look(time.Now())
	p := pageOwner{f, &pageSource{fleet: f, loop: &control.Loop{}, history: &page.History{}, last: look, at: time.Now().Add(time.Hour)}}
	q, err := p.Ask(t.Context(), page.Order{Verb: "swap", Host: "h3", In: "h4"})
	lines := strings.Join(q.Lines, "\n")
	if err != nil || q.Not == nil || !strings.Contains(q.Not.Error(), "the mode is dry-run, and nothing is done until: suffrage mode active") {
		t.Errorf("%v, %v", q.Not, err)
	}
	for _, want := range []string{"swap h3 → h4", "the owner asked for it", "snapshot: save a snapshot", "promote: promote h4", "remove: fence h3"} {
		if !strings.Contains(lines, want) {
			t.Errorf("there is no %q in\n%s", want, lines)
		}
	}
}
