package standby

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"suffrage/membership/host"

	"github.com/google/go-cmp/cmp"
)

func nobody(context.Context) (string, error) { return "", nil }

// tree is everything below a root but the clocks of directories.
func (r *rig) tree() (out []string) {
	r.t.Helper()
	r.must(filepath.WalkDir(r.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%s %s %d:%d", strings.TrimPrefix(path, r.Root), info.Mode(), st.Uid, st.Gid)
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			r.must(err)
			line += " " + sum(b) + " " + info.ModTime().String()
		}
		out = append(out, line)
		return nil
	}))
	return out
}

func (r *rig) prepare() []string {
	r.t.Helper()
	did, err := r.Prepare(r.t.Context(), false)
	r.must(err)
	return did
}

func (r *rig) remove() []string {
	r.t.Helper()
	did, err := r.Remove(r.t.Context(), false, nobody)
	r.must(err)
	return did
}

// Dry, it changes nothing; then it does what it said; given again it changes no
// file; and removed, the host is what it was.
func TestPrepareAndRemove(t *testing.T) {
	for _, tt := range []struct {
		why string
		rig func(t *testing.T) *rig
	}{
		{"etcd", newRig},
		{"k3s", k3sRig},
		{"a data directory that is there, with a file of another", func(t *testing.T) *rig {
			r := newRig(t)
			r.put(r.Data+"/theirs", "x")
			return r
		}},
		{"a unit of another version, and a mode that is too wide", func(t *testing.T) *rig {
			r := newRig(t)
			r.put(unitDir+"/"+agentUnit, "[Unit]\nDescription=of last year\n")
			r.put(r.Data+"/theirs", "x")
			r.must(os.Chmod(r.at(r.Data), 0o777))
			return r
		}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r := tt.rig(t)
			if r.K3s != nil && os.Geteuid() != 0 {
				t.Skip("SKIPPED: what K3s has is root's")
			}
			r.must(r.systemd.Reload(t.Context()))
			before := r.tree()
			would, err := r.Prepare(t.Context(), true)
			r.must(err)
			if diff := cmp.Diff(before, r.tree()); diff != "" {
				t.Fatalf("dry it changed:\n%s", diff)
			}
			did := r.prepare()
			if diff := cmp.Diff(would, did); diff != "" || len(did) == 0 {
				t.Errorf("said, and did:\n%s", diff)
			}
			if got := r.amiss(); len(got) > 0 {
				t.Errorf("prepared: %v", got)
			}
			after := r.tree()
			if again := r.prepare(); len(again) > 0 {
				t.Errorf("again: %q", again)
			}
			if diff := cmp.Diff(after, r.tree()); diff != "" {
				t.Errorf("again it changed:\n%s", diff)
			}

			r.put(r.Data+"/agent/probe", "x") // what its agent writes
			r.put(r.Datastore+".removed-1/member/wal/0.wal", "x")
			r.systemd.running[agentUnit] = true
			r.remove()
			aside, _ := filepath.Glob(r.at(r.Data) + ".removed-*")
			if len(aside) != 1 {
				t.Fatalf("aside: %v", aside)
			}
			if _, err := os.Stat(filepath.Join(aside[0], "fence.json")); err != nil {
				t.Error(err)
			}
			r.must(os.RemoveAll(aside[0]))
			if r.K3s != nil {
				r.must(os.RemoveAll(r.at("/var/lib/rancher")))
			}
			if diff := cmp.Diff(before, r.tree()); diff != "" {
				t.Errorf("removed:\n%s", diff)
			}
			_, fragment, _ := r.systemd.text(agentUnit)
			if r.systemd.running[agentUnit] != (fragment != "") {
				t.Error("an agent of ours was stopped, one that was there before was not")
			}
			if again := r.remove(); len(again) > 0 {
				t.Errorf("removed again: %q", again)
			}
		})
	}
}

// Died anywhere, either command ends where it would have ended when given again.
func TestPrepareDiesAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		r := newRig(t)
		before := r.tree()
		todo, err := r.plan(t.Context())
		r.must(err)
		if n > len(todo) {
			break
		}
		m, err := r.begin()
		r.must(err)
		unlock, err := r.lock()
		r.must(err)
		for i, a := range todo[:n] {
			if a.Kind != "" {
				m.note(a.change)
			}
			r.must(r.save(m))
			if i < n-1 { // of the last one only the intent is on the disk
				r.must(a.do(t.Context()))
			}
		}
		unlock()
		if n%2 == 0 {
			r.prepare()
			if got := r.amiss(); len(got) > 0 {
				t.Errorf("died before %d, prepared again: %v", n, got)
			}
		}
		r.remove()
		aside, _ := filepath.Glob(r.at(r.Data) + ".removed-*")
		for _, a := range aside {
			r.must(os.RemoveAll(a))
		}
		_ = os.Remove(r.at(manifestDir)) // of n == 0: the lock was taken and nothing done
		if diff := cmp.Diff(before, r.tree()); diff != "" {
			t.Errorf("died before %d, removed:\n%s", n, diff)
		}
	}
}

func TestRemoveIsRefused(t *testing.T) {
	for _, tt := range []struct {
		why   string
		do    func(r *rig)
		votes func(context.Context) (string, error)
		want  string
	}{
		{"it runs", func(r *rig) { r.systemd.running[memberUnit] = true }, nobody, "runs: move its vote"},
		{"its role file", func(r *rig) { r.put(r.Data+"/role.json", `{"role":"voter"}`) }, nobody, "role file says voter"},
		{"the list has it", func(*rig) {}, func(context.Context) (string, error) { return "learner", nil }, "as a learner"},
		{"nobody answers", func(*rig) {}, func(context.Context) (string, error) { return "", errors.New("no quorum") }, "no quorum"},
		{"no systemd", func(r *rig) { r.systemd.err = errors.New("no bus") }, nobody, "no bus"},
	} {
		r := newRig(t)
		r.prepare()
		tt.do(r)
		before := r.tree()
		_, err := r.Remove(t.Context(), false, tt.votes)
		if !errors.Is(err, ErrMember) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.why, err)
		}
		if diff := cmp.Diff(before, r.tree()); diff != "" {
			t.Errorf("%s: refused, it changed:\n%s", tt.why, diff)
		}
	}
}

// What somebody changed since is his, and is left.
func TestRemoveLeavesWhatWasChanged(t *testing.T) {
	r := newRig(t)
	r.prepare()
	r.put(unitDir+"/"+agentUnit, "mine")
	did := r.remove()
	if got, err := os.ReadFile(r.at(unitDir + "/" + agentUnit)); string(got) != "mine" || !slices.ContainsFunc(did, func(s string) bool { return strings.HasSuffix(s, "which was changed since") }) {
		t.Errorf("%q %v %q", got, err, did)
	}
}

// K3s's server that a boot would start again joins again, so it is left off.
func TestRemoveLeavesK3sOff(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: what K3s has is root's")
	}
	r := k3sRig(t)
	r.must(r.systemd.Enable(t.Context(), "k3s.service", true))
	r.prepare()
	r.remove()
	if _, err := os.Lstat(r.systemd.link("k3s.service")); err == nil {
		t.Error("a boot would start K3s's server, and nothing keeps it from joining")
	}
}

func TestPrepareIsRefused(t *testing.T) {
	for _, tt := range []struct {
		why  string
		do   func(r *rig)
		want string
	}{
		{"no user", func(r *rig) { r.put("/etc/passwd", "") }, "useradd"},
		{"a server elsewhere", func(r *rig) { r.put(unitDir+"/"+memberUnit, "x"); r.systemd.running[memberUnit] = true }, "look at member.data_dir"},
		{"no systemd", func(r *rig) { r.systemd.err = errors.New("no bus") }, "no bus"},
		{"no user namespaces", func(r *rig) { r.put("/proc/sys/user/max_user_namespaces", "0\n") }, "sysctl user.max_user_namespaces"},
		{"a link for a unit", func(r *rig) {
			r.must(os.MkdirAll(r.at(unitDir), 0o755))
			r.must(os.Symlink("/etc/passwd", r.at(unitDir+"/"+agentUnit)))
		}, "neither a file nor a directory"},
		{"a manifest of another", func(r *rig) {
			r.must(os.Mkdir(r.at(manifestDir), 0o777))
			r.must(os.Chmod(r.at(manifestDir), 0o777))
		}, "with mode 0700"},
	} {
		r := newRig(t)
		tt.do(r)
		before := r.tree()
		if _, err := r.Prepare(t.Context(), false); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.why, err)
		}
		if diff := cmp.Diff(before, r.tree()); diff != "" {
			t.Errorf("%s: refused, it changed:\n%s", tt.why, diff)
		}
	}
}

// Nothing that the services' user has put into his directory leads root out of it.
func TestPrepareFollowsNoLink(t *testing.T) {
	r := newRig(t)
	r.must(os.Mkdir(r.at(r.Data), 0o750))
	r.put("/etc/precious", "x")
	for _, name := range []string{"fence.json.new", ".fence.json.new", ".fence.json.prepared"} {
		r.must(os.Symlink("../../../etc/precious", filepath.Join(r.at(r.Data), name)))
	}
	r.prepare()
	if got, err := os.ReadFile(r.at("/etc/precious")); string(got) != "x" {
		t.Errorf("%q %v", got, err)
	}
	if err := r.fence(); err.State != OK {
		t.Error(err)
	}
}

// An agent that runs may be given an order between the look and the fence.
func TestNoFenceForAHostThatWasGivenAVote(t *testing.T) {
	r := newRig(t)
	todo, err := r.plan(t.Context())
	r.must(err)
	r.must(os.MkdirAll(r.at(r.Data), 0o700))
	r.put(r.Data+"/role.json", `{"role":"voter"}`)
	tried := false
	for _, a := range todo {
		if strings.HasPrefix(a.say, "put up the fence") {
			tried = true
			if err := a.do(t.Context()); err == nil || !strings.Contains(err.Error(), "an order was carried out") {
				t.Errorf("%s: %v", a.say, err)
			}
		}
	}
	if _, err := os.Lstat(r.at(r.Data + "/fence.json")); err == nil || !tried {
		t.Errorf("a voter is fenced (%v), or no fence was planned: %t", err, tried)
	}
}

// From before the look whether the host votes no member can be started.
func TestNoStartWhileItIsRemoved(t *testing.T) {
	r := newRig(t)
	r.Founder = true // so that no fence keeps it from starting
	r.prepare()
	asked := false
	_, err := r.Remove(t.Context(), false, func(context.Context) (string, error) {
		asked = true
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := host.Begin(ctx, r.at(r.Data)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a start: %v", err)
		}
		return "", nil
	})
	if err != nil || !asked {
		t.Errorf("%v, asked %t", err, asked)
	}
}
