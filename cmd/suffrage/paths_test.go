package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
)

func TestStatusSaysWhoIsRelayed(t *testing.T) {
	now := time.Date(2026, 8, 6, 12, 0, 0, 0, time.UTC)
	since := func(d time.Duration) int64 { return now.Add(-d).UnixMicro() }
	hosts := []HostStatus{
		{Host: "h2", Paths: []fitness.Path{
			{Peer: "h1", Kind: "relayed", Via: "lab1", Since: since(2 * time.Minute), Before: "direct"},
			{Peer: "h3", Kind: "direct", Via: "192.0.2.3:41641", Since: since(time.Hour), Before: "relayed"},
		}},
		{Host: "h1", Paths: []fitness.Path{{Peer: "h2", Kind: "relayed", Via: "lab1", Since: since(3 * time.Minute), Before: "direct"}}},
		{Host: "h3", Paths: []fitness.Path{{Peer: "h1", Kind: "relayed", Via: "fra"}}}, // an agent that tells no more than this
	}
	want := []string{
		"h1 and h2: relayed through lab1, direct before, since 3 min ago",
		"from h3 to h1: relayed through fra",
	}
	if diff := cmp.Diff(want, relays(hosts, now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var b bytes.Buffer
	Status{At: now, Hosts: hosts}.print(&b)
	if got := b.String(); !strings.Contains(got, "\npaths:\n  h1 and h2: relayed") {
		t.Error(got)
	}
	b.Reset()
	Status{At: now, Mode: ""}.print(&b)
	if got := b.String(); strings.Contains(got, "paths:") {
		t.Errorf("nobody is relayed:\n%s", got)
	}
}
