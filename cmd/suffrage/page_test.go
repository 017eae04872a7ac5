package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"suffrage/member/membertest"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/page"
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
		{page.Order{Verb: "pin", Host: "h1"}, "h1: Never take the host's vote automatically.", "h1 is pinned, said by anna"},
		{page.Order{Verb: "unpin", Host: "h1"}, "h1: Allow the host's vote to be taken.", "h1 is unmanaged"},
		{page.Order{Verb: "eligible", Host: "h1"}, "h1: Allow the host a vote.", "h1 is eligible"},
		{page.Order{Verb: "ineligible", Host: "h1"}, "Do not allow", "h1 is ineligible"},
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

	// A look of its own, since this controller leads nothing.
	l, err := p.source.Look(t.Context())
	if err != nil || l.Leads || l.Note == "" || len(l.Inputs.View.Members) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if again, err := p.source.Look(t.Context()); err != nil || !again.Inputs.Now.Equal(l.Inputs.Now) {
		t.Errorf("it looked twice in a round: %v", err)
	}
}
