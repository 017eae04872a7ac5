package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func record(by, id string) Cluster {
	return Cluster{ID: id, Member: "bb", Token: "t", Members: map[string]string{"h4": peer4}, By: by, At: time.Unix(0, 0).UTC()}
}

// builder makes a datastore of a cluster, in steps that it can die between.
func builder(id string, step func(string)) func(string) error {
	return func(dir string) error {
		step("build 1")
		if err := os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700); err != nil {
			return err
		}
		step("build 2")
		return os.WriteFile(filepath.Join(dir, "member", "wal", "0.wal"), []byte(id), 0o600)
	}
}

// inPlace is the cluster of the datastore that a member would start on, empty
// where none would start.
func (m *machine) inPlace() string {
	m.t.Helper()
	if err := Begin(m.t.Context(), m.data); err != nil {
		if !errors.Is(err, ErrUnfinished) {
			m.t.Fatal(err)
		}
		return ""
	}
	data, err := os.ReadFile(filepath.Join(m.datastore, "member", "wal", "0.wal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	return string(data)
}

// foundUntil makes a cluster as create and reset do, and dies before the n-th
// system call that changes something.
func foundUntil(t *testing.T, m *machine, c Cluster, n int) (at string, done bool) {
	t.Helper()
	f, err := Found(t.Context(), m.data, m.datastore)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // as the kernel does for a process that died
	f.files.point = func(what string) {
		if n--; n < 0 {
			panic(crash{what})
		}
	}
	defer func() {
		if r := recover(); r != nil {
			died, ok := r.(crash)
			if !ok {
				panic(r)
			}
			at = died.at
		}
	}()
	s, err := StandingOf(m.data, m.datastore, func(string) (string, string) { return "old", "aa" })
	if err != nil {
		t.Fatal(err)
	}
	if c.By == ByReset && s.Datastore && (s.Record == nil || s.Record.Made) {
		if _, err := f.Aside("aa"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Make(c, builder(c.ID, f.files.point)); err != nil {
		t.Fatal(err)
	}
	return "", true
}

// TestEveryCrashPointOfAFounding: whatever is left starts as the old cluster
// before anything was moved, as the new one when all is done, and in between not
// at all; given again it ends where it would have ended.
func TestEveryCrashPointOfAFounding(t *testing.T) {
	for _, tt := range []struct {
		by  string
		old bool // there is a datastore to be moved aside
	}{{ByCreate, false}, {ByReset, false}, {ByReset, true}} {
		for n, done := 0, false; !done; n++ {
			m := newMachine(t)
			if tt.old {
				m.withDatastore()
				if err := os.WriteFile(filepath.Join(m.datastore, "member", "wal", "0.wal"), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var at string
			at, done = foundUntil(t, m, record(tt.by, "new"), n)
			left := m.inPlace()
			moved := len(m.asides()) > 0
			complete, err := ClusterRecord(m.data)
			if err != nil {
				t.Fatal(err)
			}
			made := complete != nil && complete.Made
			switch {
			case made && left != "new", !made && left == "new", left == "old" && moved:
				t.Errorf("%s (old %v), dead before %q: a start finds cluster %q; made %v, moved %v", tt.by, tt.old, at, left, made, moved)
			}
			if done {
				t.Logf("%s (old %v): %d crash points", tt.by, tt.old, n)
			}
			if made { // given again it is refused: there is a datastore
				continue
			}
			if _, again := foundUntil(t, m, record(tt.by, "new"), 1000); !again {
				t.Fatal("it did not come to its end")
			}
			if got := m.inPlace(); got != "new" {
				t.Errorf("%s (old %v), dead before %q and given again: a start finds cluster %q", tt.by, tt.old, at, got)
			}
			if tt.old != (len(m.asides()) == 1) {
				t.Errorf("%s (old %v), dead before %q: aside %v", tt.by, tt.old, at, m.asides())
			}
			if litter, _ := filepath.Glob(filepath.Join(m.datastore, "founding*")); len(litter) > 0 {
				t.Errorf("litter: %v", litter)
			}
		}
	}
}

func (m *machine) asides() []string {
	out, err := filepath.Glob(m.datastore + ".replaced-*-aa")
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// TestFoundingOrder: the record is on the disk before the datastore has its
// place, and says that all is complete last.
func TestFoundingOrder(t *testing.T) {
	m := newMachine(t)
	f, err := Found(t.Context(), m.data, m.datastore)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var calls []string
	f.files.point = func(what string) { calls = append(calls, what) }
	if err := f.Make(record(ByCreate, "new"), builder("new", func(string) {})); err != nil {
		t.Fatal(err)
	}
	file := func(n string) string {
		return strings.Join([]string{"create " + n, "fill " + n, "sync " + n, "rename " + n, "sync directory"}, ", ")
	}
	want := strings.Join([]string{file(clusterFile), "clear datastore, build datastore, sync datastore, place datastore, sync datastore",
		"remove " + joinFile + ", sync directory", file(roleFile), file(clusterFile)}, ", ")
	if got := strings.Join(calls, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestStanding: what a host has is told, and looking changes nothing.
func TestStanding(t *testing.T) {
	m := newMachine(t)
	look := func() Standing {
		t.Helper()
		s, err := StandingOf(m.data, m.datastore, func(string) (string, string) { return "c1", "aa" })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := look(); !s.Clean() {
		t.Errorf("nothing is there: %+v", s)
	}
	if _, err := os.Stat(m.data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made %s", m.data)
	}
	m.withDatastore()
	if s := look(); s.Clean() || !s.Datastore || s.Cluster != "c1" || s.Member != "aa" || s.Running {
		t.Errorf("a datastore: %+v", s)
	}
	if err := os.Rename(m.datastore, m.datastore+".before-restore"); err != nil {
		t.Fatal(err)
	}
	if s := look(); !s.Clean() || len(s.Aside) != 1 || s.Aside[0].Cluster != "c1" {
		t.Errorf("one that was moved aside is history: %+v", s)
	}
	if err := (files{path: m.data}).write(fenceFile, fence{Operation: "op"}); err != nil {
		t.Fatal(err)
	}
	if s := look(); s.Clean() || s.Fence == "" {
		t.Errorf("a fence: %+v", s)
	}
	if err := os.WriteFile(filepath.Join(m.data, clusterFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := StandingOf(m.data, m.datastore, nil); err == nil {
		t.Error("a record that cannot be read counts as none")
	}
}
