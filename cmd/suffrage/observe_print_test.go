package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/observe"
)

// The worst that a report can hold still fits a terminal of 80 columns.
func TestObservedFits(t *testing.T) {
	long := strings.Repeat("much to say ", 30)
	p50, p99 := fitness.Figure(0.25123), fitness.Figure(1.5)
	lag := uint64(1234567)
	r := observe.Report{ClusterID: "ffffffffffffffff", For: fitness.Duration(time.Minute), Error: long, ElectionTimeout: fitness.Duration(5 * time.Second), ElectionTimeoutFrom: "assumed",
		LeaderChanges: 3, Alarms: []membership.Alarm{{Member: "a", Kind: "NOSPACE"}},
		Troubles: []etcd.Trouble{{Subject: "raspberrypi-4b-1a2b3c4d", What: long, Next: long}},
		Refusals: []membership.Refusal{{Code: "voter-not-responding", Subject: "raspberrypi-4b-1a2b3c4d", Detail: long, Next: long}}}
	for _, d := range []observe.Disk{
		{Says: observe.CannotSay, Lo: 0.008, Hi: 0.016, Count: 100, Limit: 0.010},
		{Says: observe.Fails, Lo: 4.096, Hi: 8.192, Count: 100, Limit: 0.010},
		{Says: observe.TooFew, Count: 99, Limit: 0.010},
		{Says: observe.NoMetrics, Limit: 0.010},
	} {
		r.Members = append(r.Members, observe.Member{ID: "a", Name: "raspberrypi-4b-1a2b3c4d", Role: "learner", Version: "3.5.21", DBSize: 1023 << 20, Lag: &lag, List: "not told",
			RoundTrip: observe.RoundTrip{P50: &p50, P99: &p99, Count: 1000, Lost: 10}, WALFsync: d, BackendCommit: d})
	}
	var b bytes.Buffer
	printObserved(&b, r)
	for _, line := range strings.Split(b.String(), "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"NO QUORUM", "8–16 ms ?", "≥ 4.1 s fails", "only 99", "raspbe…1a2b3c4d", "assumed", "not told", "cannot say", "there was an election"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
