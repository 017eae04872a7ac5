package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"suffrage/demo"
	"suffrage/membership/etcd"
	"suffrage/membership/founding"
	"suffrage/membership/host"
	"suffrage/snapshots"
)

// tree is every file of a host's data with its content, mode and time.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "agent" { // its probes write all the time
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x %s", sha256.Sum256(data), info.ModTime())
		}
		out[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused runs a command that must not be carried out, says this, and leaves
// every file of the host as it was.
func (f *ordered) refused(why, name string, code int, want string, args ...string) {
	f.t.Helper()
	before := tree(f.t, f.settings[name].Data)
	out, errs, got := f.suffrage(name, args...)
	if got != code || !strings.Contains(errs, want) {
		f.t.Errorf("%s: exit %d, want %d and %q:\n%s%s", why, got, code, want, out, errs)
	}
	if diff := cmp.Diff(before, tree(f.t, f.settings[name].Data)); diff != "" {
		f.t.Errorf("%s: files changed (-before +after):\n%s", why, diff)
	}
}

// found runs a create or reset that must succeed.
func (f *ordered) found(name string, args ...string) founding.Plan {
	f.t.Helper()
	out, errs, code := f.suffrage(name, append([]string{"cluster"}, append(args, "-o", "json")...)...)
	var p founding.Plan
	if code != exitOK {
		f.t.Fatalf("%s on %s: exit %d: %s", args, name, code, errs)
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		f.t.Fatalf("%s on %s: %v in %s", args, name, err, out)
	}
	return p
}

// killedUntilMade gives the command again and again, killed a little later each
// time, until it comes to its end. Once a cluster's record is written, it is that
// cluster ever after.
func (f *ordered) killedUntilMade(name string, args ...string) founding.Plan {
	f.t.Helper()
	args = append([]string{"cluster", "--config", filepath.Join(f.settings[name].Dir, demo.ConfigFile), "-o", "json"}, args...)
	record := func() host.Cluster {
		c, err := host.ClusterRecord(f.settings[name].Data)
		if err != nil || c == nil {
			f.t.Fatalf("the record: %+v, %v", c, err)
		}
		return *c
	}
	kills, begun := 0, ""
	for limit := 20 * time.Millisecond; ; limit += limit / 4 {
		if limit > 10*time.Second {
			f.t.Fatal("it never came to its end")
		}
		cmd := exec.CommandContext(f.ctx, f.program, args...)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			f.t.Fatal(err)
		}
		killed := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		killed.Stop()
		c := record()
		if begun != "" && c.ID != begun {
			f.t.Errorf("begun was cluster %s, then %s", begun, c.ID)
		}
		if c.By == host.ByReset {
			begun = c.ID
		}
		// Killed after the end, it would be refused the next time: there is a datastore.
		if c.By == host.ByReset && c.Made {
			f.t.Logf("killed %d times", kills)
			return founding.Plan{Cluster: c.ID, Replaces: c.Replaces}
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != -1 {
			f.t.Fatalf("it ended by itself, and made nothing: %v\n%s", err, out.String())
		}
		kills++
		if begun != "" {
			if said, code := f.byHand(name, time.Minute); code != exitFailed || !strings.Contains(said, "not complete") {
				f.t.Errorf("a start in between: exit %d\n%s", code, said)
			}
		}
	}
}

// put writes through one member, and gives the cluster's ID and the revision.
func (f *ordered) put(name, key string) (cluster string, revision int64, err error) {
	cfg := f.settings[name].Etcd
	cfg.Endpoints = []string{f.settings[name].Member.AdvertiseClient}
	client, err := cfg.Client()
	if err != nil {
		return "", 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(f.ctx, 3*time.Second)
	defer cancel()
	r, err := client.Put(ctx, key, "x")
	if err != nil {
		return "", 0, err
	}
	return etcd.ID(r.Header.ClusterId), r.Header.Revision, nil
}

// writes waits until a member takes a write.
func (f *ordered) writes(name, key string) (cluster string, revision int64) {
	f.t.Helper()
	f.eventually("a write through "+name, func() bool {
		var err error
		cluster, revision, err = f.put(name, key)
		return err == nil
	})
	return cluster, revision
}

func (f *ordered) begin(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := f.units[name].Start(f.ctx); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *ordered) stop(name string) {
	f.t.Helper()
	if err := f.units[name].Stop(f.ctx); err != nil {
		f.t.Fatal(err)
	}
}

// byHand starts a member as a person or an upgrade script would.
func (f *ordered) byHand(name string, limit time.Duration) (said string, code int) {
	ctx, cancel := context.WithTimeout(f.ctx, limit)
	defer cancel()
	p := f.process(name, "member")
	out, err := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

const allDead = "reset to h2; etcd is dead on h1,h3,h5"

// TestClusterFromCreateToReset takes a cluster from its first day to its worst
// and back, with real agents and real etcd on addresses of their own.
func TestClusterFromCreateToReset(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real etcd")
	}
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	f := newOrdered(t, []string{"h1", "h2", "h3", "h4"}, []string{"h1", "h2", "h3"})
	old := f.createCluster()
	f.loseQuorum(old)
	f.comeBack(old)
}

func (f *ordered) createCluster() (id string) {
	f.t.Helper()
	const text = "create h1,h2,h3; no etcd on h5" // nothing runs on h5
	f.eventually("the agents answer", func() bool {
		_, errs, _ := f.suffrage("h1", "cluster", "create", "--confirm", "x")
		return strings.Contains(errs, "no etcd on h5")
	})
	f.refused("h1 comes first", "h2", exitFailed, "not-first(h1)", "cluster", "create", "--confirm", text)
	f.refused("nobody types, and no text", "h1", exitUsage, `--confirm "create h1,h2,h3; no etcd on h5"`, "cluster", "create")
	f.refused("a host that is silent is not named", "h1", exitFailed, "not confirmed", "cluster", "create", "--confirm", "create h1,h2,h3")
	f.refused("not one of the first", "h4", exitUsage, "initial_cluster does not name h4", "cluster", "create", "--confirm", text)
	first := f.found("h1", "create", "--confirm", text)
	f.refused("there is one", "h1", exitFailed, "datastore-present(h1)", "cluster", "create", "--confirm", text)
	for _, name := range []string{"h2", "h3"} {
		if p := f.found(name, "create", "--confirm", text); p.Cluster != first.Cluster || p.Token != first.Token || p.Member == first.Member {
			f.t.Errorf("%s is member %s of cluster %s, h1 member %s of %s", name, p.Member, p.Cluster, first.Member, first.Cluster)
		}
	}
	f.begin("h1", "h2", "h3")
	for _, name := range []string{"h1", "h2", "h3"} {
		if id, _ = f.writes(name, "first"); id != first.Cluster {
			f.t.Errorf("%s serves cluster %s, created was %s", name, id, first.Cluster)
		}
	}
	// A host whose configuration names it alone, as a former first host's does.
	s := f.settings["h4"]
	alone := filepath.Join(s.Dir, "alone.yaml")
	s.Member.InitialCluster = map[string]string{"h4": s.Member.AdvertisePeer}
	data, err := yaml.Marshal(s)
	if err == nil {
		err = os.WriteFile(alone, data, 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.refused("a cluster runs elsewhere", "h4", exitFailed, "cluster-exists(h1)", "cluster", "create", "--config", alone, "--confirm", "create h4; no etcd on h5")
	return id
}

// loseQuorum: h3 loses its disk, then h1 dies for good; h2 is left.
func (f *ordered) loseQuorum(old string) {
	f.t.Helper()
	data := f.settings["h3"].Data
	f.stop("h3")
	if err := os.RemoveAll(filepath.Join(data, "etcd")); err != nil {
		f.t.Fatal(err)
	}
	if said, code := f.byHand("h3", time.Minute); code != exitFailed || !strings.Contains(said, "there is no datastore") {
		f.t.Errorf("a start without a datastore: exit %d\n%s", code, said)
	}
	f.refused("it would have forgotten what it acknowledged", "h3", exitFailed, "was-member(h3)", "cluster", "create", "--confirm", "create h1,h2,h3; no etcd on h5")
	for _, name := range []string{"cluster.json", "role.json", "starts.json", "server.lock"} {
		if err := os.Remove(filepath.Join(data, name)); err != nil {
			f.t.Fatal(err)
		}
	}
	f.refused("the others know that it has started", "h3", exitFailed, "cluster-exists(h1): its etcd knows this host", "cluster", "create", "--confirm", "create h1,h2,h3; no etcd on h5")

	if out, errs, code := f.suffrage("h2", "snapshot", "save"); code != exitOK {
		f.t.Fatalf("%s%s", out, errs)
	}
	f.writes("h2", "after the snapshot")
	// It writes all the time, so its files are not compared.
	if _, errs, code := f.suffrage("h2", "cluster", "reset", "--from", "latest", "--aside"); code != exitFailed || !strings.Contains(errs, "server-runs(h2)") {
		f.t.Errorf("its member runs: exit %d: %s", code, errs)
	}
	f.stop("h2")
	f.refused("h1 runs", "h2", exitFailed, "cluster-alive(h1)", "cluster", "reset", "--from", "latest", "--aside")
	// h1 is frozen: a silent process that holds its ports is no dead one.
	syscall.Kill(f.member("h1").PID, syscall.SIGSTOP)
	syscall.Kill(f.agents["h1"].PID, syscall.SIGSTOP)
	f.refused("h1 is frozen", "h2", exitFailed, "does not answer", "cluster", "reset", "--from", "latest", "--aside")
	syscall.Kill(f.agents["h1"].PID, syscall.SIGCONT)
	syscall.Kill(f.member("h1").PID, syscall.SIGCONT)
	f.stop("h1")
	f.supervisor.Stop(f.agents["h1"])
	f.supervisor.Stop(f.agents["h3"])
}

// comeBack resets to h2 and meets the old members.
func (f *ordered) comeBack(old string) {
	f.t.Helper()
	f.refused("a datastore is there", "h2", exitFailed, "datastore-present(h2)", "cluster", "reset", "--from", "latest")
	f.refused("no source", "h2", exitUsage, "--from FILE, latest or own", "cluster", "reset")
	f.refused("no such snapshot", "h2", exitFailed, "no such file", "cluster", "reset", "--from", "/nowhere.db", "--aside")
	f.refused("who is dead has to be named", "h2", exitFailed, "not confirmed", "cluster", "reset", "--from", "latest", "--aside", "--confirm", "reset to h2")
	p := f.killedUntilMade("h2", "reset", "--from", "latest", "--aside", "--confirm", allDead)
	if p.Cluster == old || !cmp.Equal(p.Replaces, []string{old}) {
		f.t.Errorf("%+v", p)
	}
	kept, _ := filepath.Glob(f.settings["h2"].Data + "/etcd.replaced-*/member/snap/db")
	if len(kept) != 1 {
		f.t.Errorf("the old datastore is not kept once: %v", kept)
	}
	f.refused("given twice", "h2", exitFailed, "datastore-present(h2)", "cluster", "reset", "--from", "latest", "--confirm", allDead)
	f.begin("h2")
	id, revision := f.writes("h2", "again")
	if id != p.Cluster || revision <= snapshots.DefaultBump {
		f.t.Errorf("h2 serves cluster %s at revision %d; made was %s", id, revision, p.Cluster)
	}
	if out, errs, code := f.suffrage("h2", "cluster", "accept", p.Cluster); code != exitOK {
		f.t.Errorf("%s%s", out, errs)
	}

	// h1 comes back with its old datastore: refused while h2 can be asked, and
	// alone where it cannot.
	if said, code := f.byHand("h1", time.Minute); code != exitFenced || !strings.Contains(said, "cluster-replaced") || !strings.Contains(said, p.Cluster) {
		f.t.Errorf("an old member's start: exit %d\n%s", code, said)
	}
	f.supervisor.Stop(f.agents["h2"])
	f.begin("h1")
	if _, _, err := f.put("h1", "second cluster"); err == nil {
		f.t.Error("an old member took a write")
	}
	if now, _ := f.writes("h2", "beside an old member"); now != id {
		f.t.Errorf("h2 serves cluster %s", now)
	}
	f.startAgent("h2")
	f.stop("h1")

	// And once more, from what h2 has.
	f.stop("h2")
	f.eventually("h2 is reset from its own datastore", func() bool {
		_, errs, code := f.suffrage("h2", "cluster", "reset", "--from", "own", "--confirm", allDead)
		if code != exitOK && !strings.Contains(errs, "is dead on") {
			f.t.Fatal(errs)
		}
		return code == exitOK
	})
	f.begin("h2")
	now, then := f.writes("h2", "and again")
	if now == id || then <= revision {
		f.t.Errorf("cluster %s after %s, revision %d after %d", now, id, then, revision)
	}
}
