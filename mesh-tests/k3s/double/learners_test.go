package main

import (
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	core "k8s.io/api/core/v1"
)

func TestCondition(t *testing.T) {
	for _, c := range []struct {
		m      *pb.Member
		err    error
		status core.ConditionStatus
		reason string
	}{
		{&pb.Member{}, nil, core.ConditionTrue, "MemberNotLearner"},
		{&pb.Member{IsLearner: true}, nil, core.ConditionFalse, "MemberIsLearner"},
		{&pb.Member{}, errors.New("no answer"), core.ConditionFalse, "Unhealthy"},
		{&pb.Member{IsLearner: true}, errors.New("no answer"), core.ConditionFalse, "Unhealthy"}, // not that it is one
		{nil, nil, core.ConditionFalse, "NotAMember"},
	} {
		if got := conditionOf(c.m, c.err); got.Status != c.status || got.Reason != c.reason || got.Type != "EtcdIsVoter" || got.Message == "" {
			t.Errorf("%v, %v: %+v, want %s", c.m, c.err, got, c.reason)
		}
	}
}

// A node's name may have hyphens of its own.
func TestNodeOfMember(t *testing.T) {
	for member, want := range map[string]string{"h1-0a1b2c3d": "h1", "a-b-0a1b2c3d": "a-b", "h1": "h1", "": ""} {
		if got := nodeOf(member); got != want {
			t.Errorf("%q is of %q, want %q", member, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	full := fullToken([]byte("authority"), "pass:word")
	if password(full) != "pass:word" || hashOf(full) != hash([]byte("authority")) {
		t.Errorf("%s: %s, %s", full, password(full), hashOf(full))
	}
	if password("bare") != "bare" || hashOf("bare") != "" {
		t.Error("a bare password is not taken")
	}
}
