package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"suffrage/identity"
	"suffrage/member/membertest"
	"suffrage/snapshots"
)

// The test binary is also the etcd members and the process of the drill.
func init() {
	membertest.Main()
	if len(os.Args) == 3 && os.Args[1] == "snapshot" && os.Args[2] == "scratch" {
		if err := snapshots.Scratch(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// snapshotRun runs one snapshot command as main would, and gives its exit code.
func snapshotRun(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	root := &cobra.Command{Use: "suffrage", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().StringP("output", "o", "text", "")
	root.PersistentFlags().String("config", defaultConfig, "")
	root.AddCommand(newSnapshotCmd())
	var out, notes bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&notes)
	root.SetArgs(append([]string{"snapshot"}, args...))
	err := root.ExecuteContext(t.Context())
	var quiet *exitError
	switch {
	case errors.As(err, &quiet):
		code = quiet.code
		if quiet.err != nil {
			fmt.Fprint(&notes, err)
		}
	case err != nil:
		code = exitFailed
		fmt.Fprint(&notes, err)
	}
	return out.String(), notes.String(), code
}

// An owner's way through all the commands, against a real member.
func TestSnapshotCommands(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	m := c.Members[0]
	tmp := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(tmp, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	key, err := identity.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Save(filepath.Join(tmp, "host.key")); err != nil {
		t.Fatal(err)
	}
	other, err := identity.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	file("roster.yaml", fmt.Sprintf("hosts:\n  - {name: h1, address: %s, fingerprint: %q}\n  - {name: h2, address: 127.1.2.3, fingerprint: %q}\n", m.Address, key.Fingerprint(), other.Fingerprint()))
	settings := file("s.yaml", fmt.Sprintf("host: h1\ndir: %s\ndata: %s/data\netcd:\n  endpoints: [%s]\n  timeout: 20s\nmember:\n  listen_peer: %s\n  listen_client: %s\n", tmp, tmp, m.Config.AdvertiseClient, m.Config.ListenPeer, m.Config.ListenClient))
	with := func(args ...string) []string { return append(args, "--config", settings) }
	ok := func(args ...string) string {
		t.Helper()
		out, notes, code := snapshotRun(t, with(args...)...)
		if code != exitOK {
			t.Fatalf("%v: exit %d: %s", args, code, notes)
		}
		return out
	}
	decode := func(text string, into any) {
		t.Helper()
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields() // what is printed is what is documented
		if err := d.Decode(into); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}

	if out := ok("list"); !strings.Contains(out, "no snapshots in "+tmp+"/data/snapshots; take one: suffrage snapshot save") {
		t.Errorf("list before: %s", out)
	}
	if out := ok("list", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("list -o json before: %s", out)
	}
	var s snapshots.Saved
	decode(ok("save", "-o", "json"), &s)
	if s.Host != "h1" || s.Revision < 1 || filepath.Dir(s.Path) != tmp+"/data/snapshots" {
		t.Errorf("saved: %+v", s)
	}
	if out := ok("save", "--from", "h1", "--dir", tmp+"/elsewhere"); !strings.Contains(out, "saved from h1 (member "+s.Member+") and verified in ") {
		t.Errorf("save: %s", out)
	}
	var files []snapshots.File
	decode(ok("list", "-o", "json", "--verify"), &files)
	if len(files) != 1 || files[0].State != snapshots.StateVerified || files[0].Path != s.Path {
		t.Errorf("list --verify: %+v", files)
	}
	if out := ok("list"); !strings.Contains(out, "when saved  "+filepath.Base(s.Path)) {
		t.Errorf("list: %s", out)
	}
	t.Setenv("TMPDIR", t.TempDir())
	var v Verified
	decode(ok("verify", "--drill", s.Path, "-o", "json"), &v)
	if !v.OK || v.Drill == nil || v.Drill.Running.HashKV != s.HashKV {
		t.Errorf("verify --drill: %+v", v)
	}
	if out := ok("verify", s.Path); !strings.HasPrefix(out, "ok: "+s.Path) || !strings.Contains(out, s.SHA256) {
		t.Errorf("verify: %s", out)
	}
	out := ok("restore", s.Path, "--to", tmp+"/restored")
	for _, want := range []string{"member h1 of a new cluster of h1", "suffrage cluster accept"} {
		if !strings.Contains(out, want) {
			t.Errorf("restore lacks %q: %s", want, out)
		}
	}
	var r snapshots.Restored
	decode(ok("restore", s.Path, "-o", "json", "--to", tmp+"/second", "--initial-cluster", "h1=http://127.9.9.1:2380,h2=http://127.9.9.2:2380", "--bump-revision", "7"), &r)
	if r.Revision != s.Revision+7 || len(r.Cluster) != 2 || r.Member != "h1" {
		t.Errorf("restored: %+v", r)
	}
	// In a disaster there may be no settings.
	_, notes, code := snapshotRun(t, "restore", s.Path, "--to", tmp+"/third", "--name", "h7", "--peer-url", "http://127.9.9.7:2380", "--config", tmp+"/none.yaml")
	if code != exitOK || !strings.Contains(notes, "not checked against a roster") {
		t.Errorf("restore without settings: exit %d: %s", code, notes)
	}

	cut := file("cut.db", strings.Repeat("x", 100))
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // on stderr, with the next step
	}{
		{"unknown host", with("save", "--from", "h9"), exitUsage, `host "h9" is not in ` + tmp + "/roster.yaml; it has: h1, h2"},
		{"a host without a vote", with("save", "--from", "h2"), exitFailed, "it has no vote: h2; voters: h1; name one of them: --from HOST"},
		{"no settings", []string{"save", "--config", tmp + "/none.yaml"}, exitUsage, "none.yaml"},
		{"a directory that is a file", with("save", "--dir", cut), exitFailed, "cut.db: not a directory"},
		{"list of a file", with("list", "--dir", cut), exitFailed, "cut.db"},
		{"verify nothing", with("verify"), exitUsage, "takes 1 argument(s), [FILE]"},
		{"verify a missing file", with("verify", tmp+"/gone.db"), exitFailed, "suffrage snapshot list names those of this host"},
		{"verify a cut-off file", with("verify", cut), exitFailed, "cut.db: it has 100 bytes"},
		{"drill of a cut-off file", with("verify", "--drill", cut), exitFailed, "cut.db: it has 100 bytes"},
		{"restore a cut-off file", with("restore", cut, "--to", tmp+"/x"), exitFailed, "cut.db: it has 100 bytes"},
		{"restore without --to", with("restore", s.Path), exitUsage, "say where the new datastore goes: --to DIR"},
		{"restore over a directory", with("restore", s.Path, "--to", tmp+"/restored"), exitFailed, "move this one aside and keep it: mv " + tmp + "/restored"},
		{"restore an unknown host", with("restore", s.Path, "--to", tmp+"/x", "--name", "h9"), exitUsage, `host "h9" is not in`},
		{"restore another host", with("restore", s.Path, "--to", tmp+"/x", "--name", "h2"), exitUsage, "say its peer URL: --peer-url"},
		{"restore without a bump", with("restore", s.Path, "--to", tmp+"/x", "--bump-revision", "0"), exitUsage, "at least 1"},
		{"two peer URLs", with("restore", s.Path, "--to", tmp+"/x", "--initial-cluster", "h1=http://127.9.9.1:2380", "--peer-url", "http://127.9.9.2:2380"), exitUsage, "--peer-url says"},
		{"no peer URL at all", with("restore", s.Path, "--to", tmp+"/x", "--peer-url", "h1"), exitFailed, "restore"},
	} {
		_, notes, code := snapshotRun(t, tt.args...)
		if code != tt.code || !strings.Contains(notes, tt.want) {
			t.Errorf("%s: exit %d, want %d: %s; want %q", tt.name, code, tt.code, notes, tt.want)
		}
		if _, err := os.Stat(tmp + "/x"); err == nil {
			t.Errorf("%s: something was made", tt.name)
		}
	}
	var bad Verified
	stdout, _, code := snapshotRun(t, "verify", cut, "-o", "json")
	if decode(stdout, &bad); code != exitFailed || bad.OK || !strings.Contains(bad.Problem, "100 bytes") {
		t.Errorf("verify -o json of a cut-off file: exit %d: %s", code, stdout)
	}
	if err := os.Rename(cut, filepath.Join(tmp, "data", "snapshots", "cut.db")); err != nil {
		t.Fatal(err)
	}
	if stdout, _, code := snapshotRun(t, with("list", "--verify")...); code != exitFailed || !strings.Contains(stdout, "BAD") || !strings.Contains(stdout, "\ncut.db\n  it has 100 bytes") {
		t.Errorf("list --verify with a bad file: exit %d: %s", code, stdout)
	}
}
