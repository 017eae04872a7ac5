package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"suffrage/fitness"
	"suffrage/membership"
)

// Where a K3s that is started joins: not at the voter that leaves, though its name
// comes first.
func TestServers(t *testing.T) {
	for _, tt := range []struct{ why, members, want string }{
		{"all are well", "h1 h2 h3", "h2 h3"}, // h1 leaves
		{"one does not answer", "h1 h2:silent h3", "h3"},
		{"one is unfit", "h1 h2 h3:unfit", "h2"},
		{"one is not known", "h1 h2:unknown h3", "h3"},
		{"one is etcd-only", "h1 h2:etcd-only h3", "h3"},
		{"an unfit one that answers goes before a silent one", "h1 h2:silent h3:unfit", "h3"},
		{"none of them answers, and yet it stays", "h1 h2:silent", "h2"},
		{"the newcomer itself is no place, nor is a learner", "h1 h2:unfit h4 h5:learner", "h2"},
		{"no other is there", "h1", "h1"},
		{"one without a name has not started", "h1 h2:nameless h3:silent", "h3"},
	} {
		var v membership.View
		d := membership.Decision{Operation: &membership.Operation{Out: "h1", In: "h4"}}
		for _, said := range strings.Fields(tt.members) {
			host, is, _ := strings.Cut(said, ":")
			m := membership.Member{Name: host + "-0a1b", Host: host, PeerURLs: []string{"https://" + host + ":2380"}, Responding: is != "silent", Learner: is == "learner"}
			if is == "nameless" {
				m.Name = ""
			}
			h := membership.Host{Name: host, Reachable: true}
			h.Facts.Server = &fitness.ServerFacts{Grade: fitness.Full}
			if is == "etcd-only" {
				h.Facts.Server.Grade = fitness.EtcdOnly
			}
			verdict := fitness.Verdict{Host: host, Status: fitness.Fit}
			switch is {
			case "unfit":
				verdict.Status = fitness.Unfit
			case "unknown":
				verdict.Status = fitness.StatusUnknown
			}
			v.Members, v.Hosts, d.Verdicts = append(v.Members, m), append(v.Hosts, h), append(d.Verdicts, verdict)
		}
		got := servers(v, d)
		if names := strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(got)), " "), "-0a1b", ""); names != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, names, tt.want)
		}
		for name, at := range got {
			if want := fmt.Sprintf("https://%s:2380", strings.TrimSuffix(name, "-0a1b")); at != want {
				t.Errorf("%s: %s at %s", tt.why, name, at)
			}
		}
	}
}
