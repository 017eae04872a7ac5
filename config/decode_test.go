package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"suffrage/config"
)

type file struct {
	Mode  string           `yaml:"mode"`
	Agent agent            `yaml:"agent"`
	Hosts []host           `yaml:"hosts"`
	Marks map[string]int   `yaml:"marks"`
	More  *agent           `yaml:"more"`
	Skip  string           `yaml:"-"`
	Per   map[string]agent `yaml:"per"`
	Share float64          `yaml:"share"`
}

type agent struct {
	Period   time.Duration `yaml:"period"`
	Listen   string        `yaml:"listen"`
	WalFsync bool          `yaml:"wal_fsync"`
	Count    int8          `yaml:"count"`
	Common   `yaml:",inline"`
}

type Common struct {
	Dir string `yaml:"dir"`
}

type host struct {
	Name    string
	Address netip.Addr `yaml:"address"`
	Port    uint16     `yaml:"port,omitempty"`
}

func (f *file) Validate() error {
	var err error
	if f.Agent.Period > time.Hour {
		err = errors.Join(err, config.Under("agent", config.Problem{Key: "period", Found: f.Agent.Period.String(), Allowed: "10ms to 1h"}))
	}
	for i, h := range f.Hosts {
		if h.Name == "" {
			err = errors.Join(err, config.Problem{Key: fmt.Sprintf("hosts[%d].name", i), Found: "no name", Allowed: "a name"})
		}
	}
	if f.Mode == "act" {
		err = errors.Join(err, errAct)
	}
	return err
}

var errAct = errors.New("acting is not possible yet; set mode: dry-run")

func TestDecodeProblems(t *testing.T) {
	const here = "mode, agent, hosts, marks, more, per, share"
	const agentKeys = "period, listen, wal_fsync, count, dir"
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nearest key is named", "agent:\n  perod: 3s\n", []string{
			`f.yaml:2: agent.perod: unknown key; did you mean "period"? known keys here: ` + agentKeys}},
		{"letter case and dashes do not hide the meant key", "agent:\n  wal-Fsync: true\n", []string{
			`f.yaml:2: agent.wal-Fsync: unknown key; did you mean "wal_fsync"? known keys here: ` + agentKeys}},
		{"a far guess is worse than none", "zebra: 1\n", []string{
			`f.yaml:1: zebra: unknown key; known keys here: ` + here}},
		{"a field that is not for the file is unknown", "skip: 1\n", []string{
			`f.yaml:1: skip: unknown key; known keys here: ` + here}},
		{"all problems, in the order of lines", "share: much\nhosts:\n- name: h1\n  address: 100.64.0\n  port: http\nagent:\n  count: 300\n  period: 3\n", []string{
			`f.yaml:1: share: found text "much"; allowed: a number in decimal`,
			`f.yaml:4: hosts[0].address: ParseAddr("100.64.0"): IPv4 address too short`,
			`f.yaml:5: hosts[0].port: found text "http"; allowed: a whole number in decimal`,
			`f.yaml:7: agent.count: found 300; allowed: a whole number from -128 to 127`,
			`f.yaml:8: agent.period: found 3; allowed: a duration with its unit, such as 500ms, 3s or 1h30m`}},
		{"one of two equal keys would be lost silently", "mode: a\nmode: b\n", []string{
			`f.yaml:2: mode: key written twice; the first is on line 1, keep one of them`}},
		{"keys where a list is wanted", "hosts:\n  name: h1\n", []string{
			`f.yaml:2: hosts: found keys with values; allowed: a list`}},
		{"text where keys are wanted", "agent: fast\n", []string{
			`f.yaml:1: agent: found text "fast"; allowed: keys with values`}},
		{"list at the top", "- a\n", []string{`f.yaml:1: found a list; allowed: keys with values`}},
		{"a forgotten value", "agent:\n  period:\n  listen: ~\n", []string{
			`f.yaml:2: agent.period: found no value; allowed: a duration with its unit, such as 500ms, 3s or 1h30m`,
			`f.yaml:3: agent.listen: found no value; allowed: text (in quotes if it reads as something else)`}},
		{"true is no text", "mode: true\n", []string{
			`f.yaml:1: mode: found true; allowed: text (in quotes if it reads as something else)`}},
		{"yes is text in today's YAML", "agent: {wal_fsync: yes}\n", []string{
			`f.yaml:1: agent.wal_fsync: found text "yes"; allowed: true or false`}},
		{"010 is eight to YAML and ten to a person", "marks: {a: 010, b: 0x1f, c: 1.5, d: \"3\", e: 1_000}\n", []string{
			`f.yaml:1: marks.a: found 010; allowed: a whole number in decimal`,
			`f.yaml:1: marks.b: found 0x1f; allowed: a whole number in decimal`,
			`f.yaml:1: marks.c: found 1.5; allowed: a whole number in decimal`,
			`f.yaml:1: marks.d: found text "3"; allowed: a whole number in decimal`,
			`f.yaml:1: marks.e: found 1_000; allowed: a whole number in decimal`}},
		{"numbers that are none", "share: .nan\n", []string{`f.yaml:1: share: found .nan; allowed: a number in decimal`}},
		{"negative port", "hosts: [{name: h, port: -1}]\n", []string{
			`f.yaml:1: hosts[0].port: found -1; allowed: a whole number from 0 to 65535`}},
		{"anchors and aliases", "agent: &a {period: 3s}\nmore: *a\n", []string{
			`f.yaml:1: agent: found an anchor (&a); allowed: the value without it; write values out where they are used`,
			`f.yaml:2: more: found an alias (*a); allowed: the value itself, written out`}},
		{"merge key", "agent:\n  <<: {period: 3s}\n", []string{
			`f.yaml:2: agent: found a key that is not plain text; allowed: plain text as keys (no merge key <<, no anchor, alias or tag)`}},
		{"tags", "mode: !!str 3\n", []string{`f.yaml:1: mode: found a tag ("!!str"); allowed: the value without it`}},
		{"two documents", "mode: a\n---\nmode: b\n", []string{
			`f.yaml:2: found a second document (---); allowed: one document in a file`}},
		{"not YAML", "mode: a: b\n", []string{`f.yaml:1: not YAML: mapping values are not allowed in this context`}},
		{"not YAML further down", "mode: a\nagent: [\n", []string{`f.yaml:2: not YAML: did not find expected node content`}},
		{"not text", "mode: a\nagent: \xff\n", []string{`f.yaml:2: found bytes that are not text; allowed: UTF-8 text without control characters`}},
		{"keys that would garble the path", "per:\n  \"a.b\\n\": {count: x}\n", []string{
			`f.yaml:2: per."a.b\n".count: found text "x"; allowed: a whole number in decimal`}},
		{"the judge's problems get their line", "hosts:\n- name: h1\n- port: 1\nagent:\n  listen: x\n  period: 2h\nmode: act\n", []string{
			`f.yaml: acting is not possible yet; set mode: dry-run`,
			`f.yaml:3: hosts[1].name: found no name; allowed: a name`,
			`f.yaml:6: agent.period: found 2h0m0s; allowed: 10ms to 1h`}},
		{"nothing is judged before it reads cleanly", "hosts:\n- nam: h1\n", []string{
			`f.yaml:2: hosts[0].nam: unknown key; did you mean "name"? known keys here: name, address, port`}},
		{"long values are cut", "agent: {count: " + strings.Repeat("x", 999) + "}\nhosts: [{name: h, address: " + strings.Repeat("1", 999) + "}]", []string{
			`f.yaml:1: agent.count: found text "` + strings.Repeat("x", 64) + `…"; allowed: a whole number in decimal`,
			`f.yaml:2: hosts[0].address: found text of 999 bytes; allowed: at most 512 bytes`}},
		{"too large", strings.Repeat("#", config.MaxSize+1), []string{`f.yaml: found more than 1 MiB; allowed: at most 1 MiB`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := config.Decode("f.yaml", []byte(tt.in), new(file))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeReads(t *testing.T) {
	defaults := func() *file {
		return &file{Mode: "dry-run", Agent: agent{Period: time.Second, Listen: "all"}, Hosts: []host{{Name: "old"}}}
	}
	for _, tt := range []struct {
		name, in string
		want     func(*file)
	}{
		{"an empty file is all defaults", "", func(*file) {}},
		{"only comments", "# nothing yet\n", func(*file) {}},
		{"only a document start", "---\n", func(*file) {}},
		{"every key commented out below", "agent:\n#  period: 3s\n", func(*file) {}},
		{"unwritten keys keep their defaults", "agent:\n  period: 250ms\n  dir: /x\n  count: +3\n", func(f *file) {
			f.Agent.Period, f.Agent.Dir, f.Agent.Count = 250*time.Millisecond, "/x", 3
		}},
		{"a list replaces the default list", "hosts:\n- {name: h1, address: 100.64.0.1, port: 7400}\n", func(f *file) {
			f.Hosts = []host{{"h1", netip.MustParseAddr("100.64.0.1"), 7400}}
		}},
		{"a list without entries", "hosts:\n", func(f *file) { f.Hosts = nil }},
		{"numbers as text stay as written", "mode: 3.10\n", func(f *file) { f.Mode = "3.10" }},
		{"pointers and maps", "more: {listen: a}\nmarks: {x: -1}\nper: {y: {wal_fsync: true}}\nshare: 1\n", func(f *file) {
			f.More, f.Marks, f.Share = &agent{Listen: "a"}, map[string]int{"x": -1}, 1
			f.Per = map[string]agent{"y": {WalFsync: true}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, want := defaults(), defaults()
			tt.want(want)
			if err := config.Decode("f.yaml", []byte(tt.in), got); err != nil {
				t.Fatal(err)
			}
			equalAddr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
			if diff := cmp.Diff(want, got, equalAddr); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestErrorFacts(t *testing.T) {
	err := config.Decode("f.yaml", []byte("agent: {period: 2h}\nmode: act\n"), new(file))
	e, ok := errors.AsType[*config.Error](err)
	if !ok || e.File != "f.yaml" {
		t.Fatalf("%v: want a *config.Error with the file", err)
	}
	if p, ok := errors.AsType[config.Problem](err); !ok || p.Key != "agent.period" {
		t.Errorf("%v: want the Problem of the judge inside", err)
	}
	if !errors.Is(err, errAct) {
		t.Errorf("%v: want the sentinel of the judge inside", err)
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "x%d: 1\n", i)
	}
	err := config.Decode("f.yaml", []byte(b.String()), new(file))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 51 || lines[50] != "f.yaml: and 4950 more problems" {
		t.Errorf("got %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good, pipe := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(good, []byte("mode: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	var f file
	if err := config.Load(good, &f); err != nil || f.Mode != "x" {
		t.Errorf("mode %q, error %v", f.Mode, err)
	}
	missing := filepath.Join(dir, "missing.yaml")
	err := config.Load(missing, &f)
	if want := "config: read " + missing + ": file does not exist: create it, or name the right file"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	for path, want := range map[string]string{
		pipe: "config: read " + pipe + ": not a regular file (p---------): name a file",
		dir:  "config: read " + dir + ": not a regular file (d---------): name a file",
	} {
		if err := config.Load(path, &f); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "mode: dry-run\n", "agent:\n  perod: 3s\n", "hosts:\n- {name: h1, address: 100.64.0.1}\n",
		"a: &a [*a]\n", "a: &a {<<: *a}\n", "? [x]\n: y\n", "mode: |\n  x\n---\n", "\xff\xfe", "marks: {a: 1, a: 2}", "!!binary x",
		"hosts: [[[[[[[[[[", "per: {\"\": {dir: ~}}", "more: {count: -0, period: 1h}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := config.Decode("f.yaml", data, new(file))
		if err == nil {
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, "f.yaml") {
				t.Errorf("%q: a line without the file: %q", data, line)
			}
		}
		if n := len(err.Error()); n > 100_000 {
			t.Errorf("the report is %d bytes long", n)
		}
	})
}
