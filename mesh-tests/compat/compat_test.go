package compat

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/observe"
)

func TestMain(m *testing.M) {
	membertest.Main()
	goleak.VerifyTestMain(m)
}

// release is one series of etcd and what it tells of itself.
type release struct {
	series, variable string
	// tells is true where Status has the quota and an open downgrade; both came
	// with 3.6 (api/etcdserverpb/rpc.proto, etcd_version_field of StatusResponse).
	tells bool

	program string
	version string
}

var releases = []release{
	{series: "3.5", variable: "SUFFRAGE_ETCD_35"},
	{series: "3.6", variable: "SUFFRAGE_ETCD_36", tells: true},
}

// each runs f for every series that there is a program of.
func each(t *testing.T, f func(*testing.T, release)) {
	for _, r := range releases {
		t.Run(r.series, func(t *testing.T) {
			r.program = os.Getenv(r.variable)
			if r.program == "" {
				t.Skipf("%s names no etcd %s server; `make compat` builds it and runs this", r.variable, r.series)
			}
			r.version = versionOf(t, r.program)
			if !strings.HasPrefix(r.version, r.series+".") {
				t.Fatalf("%s names %s, which is etcd %s", r.variable, r.program, r.version)
			}
			f(t, r)
		})
	}
}

var versionLine = regexp.MustCompile(`(?m)^etcd Version: (\S+)$`)

func versionOf(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program, "--version").CombinedOutput()
	m := versionLine.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%s --version: %v\n%s", program, err, out)
	}
	return string(m[1])
}

// unsafe reports whether docs/decisions.md calls the version unsafe.
func (r release) unsafe(t *testing.T) bool {
	var patch int
	if _, err := fmt.Sscanf(r.version, r.series+".%d", &patch); err != nil {
		t.Fatal(err)
	}
	return patch < map[string]int{"3.5": 26, "3.6": 10}[r.series]
}

// quota is what the report must have for a configured one: 0 is "not told".
func (r release) quota(configured int64) int64 {
	if r.tells {
		return configured
	}
	return 0
}

// expect compares the codes of the refusals, besides an unsafe version's.
func (r release) expect(t *testing.T, got observe.Report, want ...membership.Code) {
	t.Helper()
	rest, unsafe := map[membership.Code]bool{}, 0
	for _, f := range got.Refusals {
		if f.Code == membership.UnsafeVersion {
			unsafe++
		} else {
			rest[f.Code] = true
		}
	}
	if (unsafe > 0) != r.unsafe(t) {
		t.Errorf("%s: %d refusals for an unsafe version; docs/decisions.md says unsafe is %v", r.version, unsafe, r.unsafe(t))
	}
	for _, c := range want {
		if !rest[c] {
			t.Errorf("no refusal %s: %v", c, got.Refusals)
		}
		delete(rest, c)
	}
	if len(rest) > 0 {
		t.Errorf("refusals %v, want %v", got.Refusals, want)
	}
}

func configOf(c *membertest.Cluster) etcd.Config {
	cfg := etcd.DefaultConfig()
	cfg.Endpoints, cfg.CA, cfg.Cert, cfg.Key = c.Endpoints()[:1], c.CA, c.Cert, c.Key
	return cfg
}

func clientOf(t *testing.T, c *membertest.Cluster) *clientv3.Client {
	t.Helper()
	cl, err := configOf(c).Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), membertest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// until runs observe for a second each time until the report is as asked for.
func until(t *testing.T, c *membertest.Cluster, what string, ok func(observe.Report) bool) observe.Report {
	t.Helper()
	ctx := patient(t)
	var last observe.Report // that was not cut off by the deadline
	for {
		r, err := observe.Run(ctx, observe.Options{Etcd: configOf(c), For: time.Second})
		if err == nil && ok(r) {
			return r
		}
		if ctx.Err() != nil {
			t.Fatalf("never seen: %s; last: %+v, then %v", what, last, err)
		}
		last = r
	}
}

func named(r observe.Report, name string) observe.Member {
	for _, m := range r.Members {
		if m.Name == name {
			return m
		}
	}
	return observe.Member{}
}

// well is true when every member of the list responds.
func well(r observe.Report) bool {
	for _, m := range r.Members {
		if !m.Responding {
			return false
		}
	}
	return r.Error == ""
}
