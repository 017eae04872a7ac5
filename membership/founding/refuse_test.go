package founding

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"suffrage/membership"
	"suffrage/membership/host"
)

var initial = map[string]string{"h1": "https://10.0.0.1:2380", "h2": "https://10.0.0.2:2380", "h3": "https://10.0.0.3:2380"}

func recordOf(id, by string, made bool) *host.Cluster {
	return &host.Cluster{ID: id, Token: "token of " + id, Members: maps.Clone(initial), By: by, Made: made}
}

// created is a host on which create has come to its end.
func created(id string) host.Standing {
	return host.Standing{Datastore: true, Cluster: id, Role: host.Voter, Record: recordOf(id, host.ByCreate, true)}
}

func answering(name string, st host.Standing) Seen { return Seen{Host: name, Standing: &st} }

// codes are the refusals in a form for tables: code(host).
func codes(refusals []membership.Refusal) string {
	var out []string
	for _, r := range refusals {
		out = append(out, string(r.Code)+"("+r.Subject+")")
	}
	return strings.Join(out, " ")
}

func TestCreateRefusals(t *testing.T) {
	clean := host.Standing{}
	running := func(name string, st host.Standing, s Started) Seen {
		st.Running = true
		return Seen{Host: name, Standing: &st, Etcd: "its peer port answers", Starting: s}
	}
	other := created("c1")
	other.Record.Members = map[string]string{"h1": initial["h1"]}
	fenced := created("c1")
	fenced.Fence = "by operation op"
	for _, test := range []struct {
		why    string
		here   string
		local  host.Standing
		others []Seen
		want   string
	}{
		{"a fleet of the first day", "h1", clean, []Seen{answering("h2", clean), answering("h3", clean)}, ""},
		{"silence is confirmed, not refused", "h1", clean, []Seen{{Host: "h2"}, {Host: "h3"}}, ""},
		{"the second host takes the first one's token", "h2", clean, []Seen{answering("h1", created("c1")), answering("h3", clean)}, ""},
		{"the first host died before its end; its record counts", "h2", clean, []Seen{answering("h1", host.Standing{Record: recordOf("c1", host.ByCreate, false)})}, ""},
		{"two tokens would be two clusters", "h2", clean, []Seen{answering("h1", clean), answering("h3", clean)}, "not-first(h1)"},
		{"nobody may draw a token while the first is silent", "h2", clean, []Seen{{Host: "h1"}}, "not-first(h1)"},
		{"the first is not in the roster", "h2", clean, nil, "not-first(h1)"},
		{"the first was created with another configuration", "h2", clean, []Seen{answering("h1", other)}, "cluster-exists(h1)"},
		{"the first has a datastore of unknown make", "h2", clean, []Seen{answering("h1", host.Standing{Datastore: true})}, "cluster-exists(h1)"},
		{"it goes on after a crash", "h1", host.Standing{Record: recordOf("c1", host.ByCreate, false)}, []Seen{answering("h2", clean)}, ""},
		{"it goes on though the others have gone on already", "h1", host.Standing{Record: recordOf("c1", host.ByCreate, false)}, []Seen{answering("h2", created("c1"))}, ""},
		{"it goes on with its own datastore in place", "h1", host.Standing{Datastore: true, Cluster: "c1", Record: recordOf("c1", host.ByCreate, false)}, nil, ""},
		{"a reset was begun here", "h1", host.Standing{Record: recordOf("c1", host.ByReset, false)}, nil, "cluster-recorded(h1)"},

		{"a datastore", "h1", host.Standing{Datastore: true}, nil, "datastore-present(h1)"},
		{"given twice", "h1", created("c1"), nil, "datastore-present(h1)"},
		{"a member runs", "h1", host.Standing{Datastore: true, Running: true}, nil, "server-runs(h1)"},
		{"a fence", "h1", host.Standing{Fence: "by operation op", Role: host.Standby}, nil, "fenced(h1)"},
		{"the disk of a member is not mounted", "h1", host.Standing{Role: host.Voter, Record: recordOf("c1", host.ByCreate, true)}, nil, "was-member(h1)"},
		{"a role of before there were records", "h1", host.Standing{Role: host.Voter}, nil, "was-member(h1)"},
		{"it was told to join", "h1", host.Standing{Join: "op"}, nil, "was-member(h1)"},
		{"a datastore that was moved aside is history", "h1", host.Standing{Aside: []host.Aside{{Path: "etcd.old", Cluster: "c0"}}}, nil, ""},

		{"a former first host whose data is gone", "h1", clean, []Seen{answering("h2", created("c1")), answering("h3", created("c1"))}, "cluster-exists(h2) cluster-exists(h3)"},
		{"a standby has a datastore", "h1", clean, []Seen{answering("h4", host.Standing{Datastore: true})}, "cluster-exists(h4)"},
		{"a standby is fenced", "h1", clean, []Seen{answering("h4", host.Standing{Fence: "by operation op"})}, "cluster-exists(h4)"},
		{"a standby was prepared and never anything else", "h1", clean, []Seen{answering("h4", host.Standing{Fence: "by suffrage standby prepare", Prepared: true})}, ""},
		{"a standby was prepared and has a datastore", "h1", clean, []Seen{answering("h4", host.Standing{Fence: "by suffrage standby prepare", Prepared: true, Datastore: true})}, "cluster-exists(h4)"},
		{"a first voter that was prepared as a standby", "h1", host.Standing{Fence: "by suffrage standby prepare", Prepared: true}, nil, "fenced(h1)"},
		{"another host has only a record", "h1", clean, []Seen{answering("h4", host.Standing{Record: recordOf("c1", host.ByCreate, true)})}, "cluster-exists(h4)"},
		{"somebody else's etcd", "h1", clean, []Seen{{Host: "h4", Standing: &host.Standing{}, Etcd: "answers"}}, "cluster-exists(h4)"},
		{"etcd of a host whose agent is silent", "h1", clean, []Seen{{Host: "h4", Etcd: "answers"}}, "cluster-exists(h4)"},
		{"another of the first was fenced since", "h3", clean, []Seen{answering("h1", created("c1")), answering("h2", fenced)}, "cluster-exists(h2)"},
		{"another of the first is of another cluster", "h3", clean, []Seen{answering("h1", created("c1")), answering("h2", created("c2"))}, "cluster-exists(h2)"},

		{"the others run, and never saw this host", "h3", clean, []Seen{running("h1", created("c1"), NeverStarted), running("h2", created("c1"), NeverStarted)}, ""},
		{"the others know this host", "h3", clean, []Seen{running("h1", created("c1"), HasStarted)}, "cluster-exists(h1)"},
		{"the others run and cannot say", "h3", clean, []Seen{running("h1", created("c1"), NotKnown)}, "cluster-exists(h1)"},
	} {
		record, refusals := CreateRefusals(Sight{test.here, test.local, test.others}, initial)
		if got := codes(refusals); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
		if test.want == "" && test.here != "h1" && (record == nil || record.Token != "token of c1") {
			t.Errorf("%s: it goes on with %+v", test.why, record)
		}
	}
}

func TestResetRefusals(t *testing.T) {
	reset := host.Standing{Datastore: true, Cluster: "c9", Record: recordOf("c9", host.ByReset, true)}
	for _, test := range []struct {
		why    string
		local  host.Standing
		others []Seen
		moves  bool
		want   string
	}{
		{"nothing is here, the others are dead", host.Standing{}, []Seen{{Host: "h1"}, {Host: "h2"}}, false, ""},
		{"the others are stopped", created("c1"), []Seen{answering("h1", created("c1"))}, true, ""},
		{"a datastore is in the way", created("c1"), nil, false, "datastore-present(h3)"},
		{"its member runs", host.Standing{Datastore: true, Running: true}, nil, true, "server-runs(h3)"},
		{"what a fenced host has may be old", host.Standing{Datastore: true, Fence: "by operation op"}, nil, true, "fenced(h3)"},
		{"nothing was ever started", host.Standing{Record: recordOf("c1", host.ByCreate, false)}, nil, false, "cluster-recorded(h3)"},
		{"it goes on after a crash", host.Standing{Datastore: true, Cluster: "c9", Record: recordOf("c9", host.ByReset, false)}, nil, false, ""},
		{"another runs, says its agent", host.Standing{}, []Seen{answering("h1", host.Standing{Datastore: true, Running: true})}, false, "cluster-alive(h1)"},
		{"another runs, says its port", host.Standing{}, []Seen{{Host: "h1", Etcd: "accepts connections and does not answer"}}, false, "cluster-alive(h1)"},
		{"another was reset already", host.Standing{}, []Seen{answering("h1", reset)}, false, "cluster-exists(h1)"},
		{"another was reset, and its datastore is aside", host.Standing{}, []Seen{answering("h1", host.Standing{Record: reset.Record})}, false, ""},
	} {
		if got := codes(ResetRefusals(Sight{"h3", test.local, test.others}, test.moves)); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}

func TestSilentAndReplaced(t *testing.T) {
	reset := recordOf("c3", host.ByReset, true)
	reset.Replaces = []string{"c1"}
	s := Sight{"h3", host.Standing{Datastore: true, Cluster: "c3", Record: reset, Aside: []host.Aside{{Cluster: "c2"}, {}}},
		[]Seen{{Host: "h1"}, {Host: "h2", Etcd: "answers"}, answering("h4", host.Standing{Datastore: true, Cluster: "c4"}), answering("h5", host.Standing{})}}
	if got := s.Silent(); !slices.Equal(got, []string{"h1"}) {
		t.Errorf("silent %v", got)
	}
	if got := s.Replaced("c5"); !slices.Equal(got, []string{"c1", "c2", "c3", "c4"}) {
		t.Errorf("replaced %v", got)
	}
	if got := s.Replaced("c3"); slices.Contains(got, "c3") {
		t.Errorf("a cluster would replace itself: %v", got)
	}
}

// Every code has its place in docs/recovery.md.
func TestRecoveryPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/recovery.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("refuse.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`membership\.Code = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) != 6 {
		t.Fatalf("found %d codes", len(found))
	}
	for _, c := range append(found, []string{"", string(membership.DatastorePresent)}, []string{"", string(host.ServerRuns)}) {
		if !strings.Contains(string(page), "| `"+c[1]+"` |") {
			t.Errorf("docs/recovery.md does not have %s", c[1])
		}
	}
}
