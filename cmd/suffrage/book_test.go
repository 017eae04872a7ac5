package main

import (
	"testing"
	"time"

	"suffrage/member/membertest"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// A controller whose clock is an hour ahead has written the record. A command that only
// looks cannot put that right, and for an hour no sample would count to it.
func TestRecordOfAClockAhead(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1})
	client := configured(t, c)
	b := book{kv: client, timeout: time.Minute}
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, x := range []struct {
		why            string
		written        time.Duration
		since, changed time.Time
	}{
		{"an hour ahead", time.Hour, time.Time{}, time.Time{}},
		{"an hour ago", -time.Hour, now.Add(-time.Hour), now.Add(-time.Hour)},
	} {
		if err := etcd.Accept(t.Context(), client, "c1", []string{"m1"}, now.Add(x.written)); err != nil {
			t.Fatal(err)
		}
		v := membership.View{At: now, ClusterID: "c1", Members: []membership.Member{{ID: "m1", Host: "h1"}}}
		if err := b.Membership(t.Context(), &v); err != nil {
			t.Fatal(err)
		}
		if v.RecordedClusterID != "c1" || !v.MembershipSince.Equal(x.since) || !v.MembershipChanged.Equal(x.changed) {
			t.Errorf("%s: since %v, changed %v; want %v, %v", x.why, v.MembershipSince, v.MembershipChanged, x.since, x.changed)
		}
	}
}
