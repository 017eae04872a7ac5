package snapshots

import (
	"errors"
	"fmt"
	"strings"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

// ErrNoVote means that the host has no vote, so no snapshot is taken from it.
var ErrNoVote = errors.New("snapshots: it has no vote")

// Source is the one voter that a snapshot is taken from.
type Source struct {
	// Host is its name in the roster.
	Host string
	// Member is its ID, as etcdctl prints it.
	Member string
	// Etcd is how to reach it: with exactly one endpoint, the member's own.
	Etcd etcd.Config
}

// SourceOf finds the voter of a host in an observation. It does not ask for a
// quorum: when that is lost, a snapshot of what is left is worth the most.
func SourceOf(ob etcd.Observation, cfg etcd.Config, host string) (Source, error) {
	if len(ob.Members) == 0 {
		return Source{}, fmt.Errorf("snapshots: find the member of %s: %s", host, ob.Error)
	}
	var voters []string
	for _, m := range ob.Members {
		if !m.Learner && m.Host != "" {
			voters = append(voters, m.Host)
		}
	}
	for _, m := range ob.Members {
		switch {
		case m.Host != host || host == "":
			continue
		case m.Learner:
			return Source{}, fmt.Errorf("%w: %s is a learner still; voters: %s", ErrNoVote, host, strings.Join(voters, ", "))
		case ob.Reached[m.ID] == "":
			return Source{}, fmt.Errorf("snapshots: member %s of %s does not answer: %s; voters: %s", m.ID, host, m.Error, strings.Join(voters, ", "))
		}
		cfg.Endpoints = []string{ob.Reached[m.ID]}
		return Source{Host: host, Member: m.ID, Etcd: cfg}, nil
	}
	return Source{}, fmt.Errorf("%w: %s; voters: %s", ErrNoVote, host, strings.Join(voters, ", "))
}

// Pick chooses the voter to save before a swap: one that responds and is
// neither the leader nor outgoing, else the leader if that stays. One that is
// leaving would take the only copy with it. Equal choices go by ID, so the same
// view gives the same voter.
func Pick(v membership.View, outgoing string) (host string, ok bool) {
	leader, spare := v.Leader(), ""
	for _, m := range v.Voters() { // sorted by ID
		switch {
		case !m.Responding || m.Host == "" || m.Host == outgoing:
		case m.ID != leader:
			return m.Host, true
		default:
			spare = m.Host
		}
	}
	return spare, spare != ""
}
