package control

import (
	"suffrage/fitness"
	"suffrage/membership"
)

// servers are those at which a host of K3s joins, as a server or as an agent: the
// best there are. One that leaves or does not answer would hold up the join, or end
// with it, and an unfit one is mostly why somebody is given a vote.
func servers(v membership.View, d membership.Decision) map[string]string {
	best, out := -1, map[string]string{}
	for _, m := range v.Members {
		if m.Name == "" || len(m.PeerURLs) == 0 {
			continue
		}
		switch rank := joinable(v, d, m); {
		case rank > best:
			best, out = rank, map[string]string{m.Name: m.PeerURLs[0]}
		case rank == best:
			out[m.Name] = m.PeerURLs[0]
		}
	}
	return out
}

// joinable ranks a member: first that it votes and stays, then that it answers, then
// how fit its host is, and last that it is full, since what joins asks its API server.
func joinable(v membership.View, d membership.Decision, m membership.Member) int {
	rank := 0
	for _, yes := range []bool{!m.Learner && m.Host != d.Operation.Out && m.Host != d.Operation.In, m.Responding} {
		rank <<= 1
		if yes {
			rank++
		}
	}
	rank = rank<<2 + map[fitness.Status]int{fitness.Fit: 3, fitness.Marginal: 2, fitness.StatusUnknown: 1, fitness.Unfit: 0}[status(d, m.Host)]
	rank <<= 1
	for _, h := range v.Hosts {
		if h.Name == m.Host && m.Host != "" && h.Grade() != fitness.EtcdOnly {
			rank++
		}
	}
	return rank
}

func status(d membership.Decision, host string) fitness.Status {
	for _, v := range d.Verdicts {
		if v.Host == host {
			return v.Status
		}
	}
	return fitness.StatusUnknown
}
