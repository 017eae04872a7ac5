package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// owner runs the owner's commands as main would, on a fleet of one member.
type owner struct {
	t        *testing.T
	settings string
}

func newOwner(t *testing.T, m *membertest.Member) owner {
	t.Helper()
	dir := t.TempDir()
	key, err := identity.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "s.yaml")
	if err := errors.Join(key.Save(filepath.Join(dir, "host.key")),
		os.WriteFile(filepath.Join(dir, "roster.yaml"), fmt.Appendf(nil, "hosts:\n  - {name: h1, address: %s, fingerprint: %q}\n", m.Address, key.Fingerprint()), 0o600),
		os.WriteFile(settings, fmt.Appendf(nil, "host: h1\ndir: %s\ndata: %s/data\netcd:\n  endpoints: [%s]\n  timeout: 20s\n", dir, dir, m.Config.AdvertiseClient), 0o600)); err != nil {
		t.Fatal(err)
	}
	return owner{t, settings}
}

func (o owner) run(args ...string) (stdout, stderr string, code int) {
	root := &cobra.Command{Use: "suffrage", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().StringP("output", "o", "text", "")
	root.PersistentFlags().String("config", defaultConfig, "")
	root.AddCommand(newModeCmd(), newPauseCmd(), newResumeCmd(), newClearQuarantineCmd(), newOperationsCmd())
	var out, notes bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&notes)
	root.SetIn(strings.NewReader("yes\n")) // nobody at a terminal
	root.SetArgs(append(args, "--config", o.settings))
	err := root.ExecuteContext(o.t.Context())
	var quiet *exitError
	switch {
	case errors.As(err, &quiet):
		code = quiet.code
	case err != nil:
		code = exitFailed
	}
	if err != nil {
		fmt.Fprint(&notes, err)
	}
	return out.String(), notes.String(), code
}

func (o owner) says(want string, args ...string) {
	o.t.Helper()
	if out, notes, code := o.run(args...); code != exitOK || !strings.Contains(out, want) {
		o.t.Errorf("%v: exit %d, %s%s; want %q", args, code, out, notes, want)
	}
}

func (o owner) fails(code int, want string, args ...string) {
	o.t.Helper()
	if out, notes, got := o.run(args...); got != code || !strings.Contains(notes, want) || out != "" {
		o.t.Errorf("%v: exit %d, %q, %q; want %d, %q", args, got, out, notes, code, want)
	}
}

func (o owner) json(into any, args ...string) {
	o.t.Helper()
	out, notes, code := o.run(append(args, "-o", "json")...)
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(into); code != exitOK || err != nil {
		o.t.Fatalf("%v: exit %d, %v: %s%s", args, code, err, out, notes)
	}
}

// What the owner says, and what is told of what was done, against real etcd.
func TestOwnersCommands(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	o := newOwner(t, c.Members[0])

	o.says("dry-run (nobody said otherwise", "mode")
	o.fails(exitUsage, "add --yes", "mode", "active")
	o.fails(exitUsage, "mode is dry-run or active", "mode", "ACTIVE")
	o.says("active (said by anna 0 s ago: weeks of dry-run)", "mode", "active", "--yes", "--by", "anna", "--reason", "weeks of dry-run")
	o.says("paused, said by ben", "pause", "--by", "ben", "--reason", "moving")
	var m ModeShown
	o.json(&m, "mode")
	if m.Mode != "active" || m.From != "owner" || m.By != "anna" || !m.Paused {
		t.Errorf("mode: %+v", m)
	}
	o.says("paused: nothing new is started", "mode")
	var p PauseShown
	o.json(&p, "resume", "--by", "ben")
	if p.Paused.Value || p.Paused.By != "ben" {
		t.Errorf("resume: %+v", p)
	}
	o.says("dry-run (said by", "mode", "dry-run")

	o.fails(exitUsage, `host "h9" is not in`, "clear-quarantine", "h9")
	o.fails(exitUsage, "takes 1 argument", "clear-quarantine")
	o.says("h1 is forgiven what failed until now, said by anna", "clear-quarantine", "h1", "--by", "anna")
	var mark HostMark
	o.json(&mark, "clear-quarantine", "h1", "--reason", "opened the port")
	if mark.Mark.Cleared == nil || !mark.Mark.Cleared.Value || mark.Mark.Cleared.Reason != "opened the port" {
		t.Errorf("clear-quarantine: %+v", mark)
	}

	o.says("no operations yet", "operations", "list")
	recordSome(t, c)
	var all []OperationRecord
	o.json(&all, "operations", "list")
	if len(all) != 2 || all[0].ID != "20260302t000000-2" || all[0].WorstLowered == nil || *all[0].WorstLowered || !*all[1].WorstLowered || all[1].Seconds != 200 {
		t.Errorf("list: %+v", all)
	}
	o.says("150 ms → 160 ms, NOT lowered", "operations", "list")
	o.says("completed", "operations", "list", "--last", "1")
	o.fails(exitUsage, "allowed are 1 to 200", "operations", "list", "--last", "0")
	for _, want := range []string{"h3 → h4", "asked by        anna", "150 ms → 160 ms, NOT lowered", "was not lowered: something else is slow", "a.db on h1, revision 7, 2KiB",
		"join  40.0 s  learner behind", "members after   a b d", "took 3 min 20 s", "rtt            h1    150 ms  75.0 ms"} {
		o.says(want, "operations", "show", "20260302t000000-2")
	}
	var r OperationRecord
	o.json(&r, "operations", "show", "20260301t000000-1")
	if len(r.Steps) != 1 || r.Steps[0].Seconds != 40 || r.Open || r.Snapshot == nil {
		t.Errorf("show: %+v", r)
	}
	o.fails(exitUsage, "suffrage operations list", "operations", "show", "none")
	for args, want := range map[string]string{"operations show": "20260302t000000-2\tswap h3 → h4 completed\n20260301t000000-1\t", "operations stop": ":", "host pin": "h1\n", "mode": "active\n"} {
		var out bytes.Buffer
		words := append([]string{"__complete"}, strings.Fields(args)...)
		if code := run(t.Context(), append(words, "--config", o.settings, ""), &out, io.Discard); code != exitOK || !strings.Contains(out.String(), want) || args == "operations stop" && strings.Contains(out.String(), "2026") {
			t.Errorf("%s is completed with %q, want %q", args, out.String(), want)
		}
	}

	kv := configured(t, c)
	if _, err := kv.Put(t.Context(), "/suffrage/hosts/h1/remove", "left behind"); err != nil {
		t.Fatal(err)
	}
	o.says("no removal is asked for on h1", "operations", "withdraw", "h1")
	if g, err := kv.Get(t.Context(), "/suffrage/hosts/h1/remove"); err != nil || len(g.Kvs) != 0 {
		t.Errorf("%v, %v", g, err)
	}
	o.fails(exitUsage, "is not in", "operations", "withdraw", "h9")

	// It ended in this very second, or on a host whose clock is ahead.
	ended := time.Now().UTC().Add(5 * time.Minute)
	newest := membership.Operation{ID: "20260303t000000-3", Out: "h1", In: "h3", By: "anna", Begun: ended.Add(-time.Minute), Ended: ended, Outcome: membership.Completed}
	if err := etcd.NewHistory(kv, nil).Record(t.Context(), 1, newest); err != nil {
		t.Fatal(err)
	}
	o.json(&mark, "clear-quarantine", "h1")
	if mark.Mark.Cleared == nil || mark.Mark.Cleared.At.Before(ended) {
		t.Errorf("cleared at %v what ended at %v", mark.Mark.Cleared, ended)
	}
}

// A person at the terminal has to type the whole word.
func TestConfirmed(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, "y\n": false, "\n": false, "": false, "no\n": false, strings.Repeat("yes", 2000): false} {
		c := &cobra.Command{}
		var asked bytes.Buffer
		c.SetIn(strings.NewReader(answer))
		c.SetErr(&asked)
		if err := confirmed(c, "Sure?"); (err == nil) != want || !strings.HasPrefix(asked.String(), "Sure?\n") {
			t.Errorf("%.10q: %v, %q", answer, err, asked.String())
		}
	}
}

// recordSome keeps two swaps: the second did not help.
func recordSome(t *testing.T, c *membertest.Cluster) {
	t.Helper()
	kv := configured(t, c)
	before, better, worse, limit := fitness.Figure(.15), fitness.Figure(.002), fitness.Figure(.16), fitness.Figure(.075)
	begun := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	op := membership.Operation{ID: "20260301t000000-1", Out: "h3", In: "h4", By: "anna", Why: "h3 is slow", Begun: begun, Ended: begun.Add(200 * time.Second), Outcome: membership.Completed,
		MembersBefore: []string{"a", "b", "c"}, MembersAfter: []string{"a", "b", "d"}, WorstBefore: &before, WorstAfter: &better,
		Figures:  []membership.Datum{{Name: "rtt", Value: before, Limit: &limit, Unit: "s", Peer: "h1"}},
		Steps:    []membership.StepRecord{{Name: "join", Begun: begun, Ended: begun.Add(40 * time.Second), Note: "learner behind"}},
		Snapshot: &membership.SnapshotRef{Host: "h1", File: "a.db", Revision: 7, Size: 2048, Hash: "x"}}
	h := etcd.NewHistory(kv, nil)
	err := h.Record(t.Context(), 1, op)
	op.ID, op.WorstAfter = "20260302t000000-2", &worse
	if err := errors.Join(err, h.Record(t.Context(), 1, op)); err != nil {
		t.Fatal(err)
	}
}

func configured(t *testing.T, c *membertest.Cluster) *clientv3.Client {
	t.Helper()
	cfg := etcd.DefaultConfig()
	cfg.Endpoints = c.Endpoints()
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}
