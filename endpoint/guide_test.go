package endpoint

import (
	"errors"
	"net/netip"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestBest: which of the voters that were looked at reads are led to.
func TestBest(t *testing.T) {
	bad := errors.New("no answer")
	sighted := func(id uint64, url string, change func(*sight)) sight {
		s := sight{voter: &voter{id: id, url: url}, leader: 2, leaving: map[uint64]bool{}}
		if change != nil {
			change(&s)
		}
		return s
	}
	h1 := func(f func(*sight)) sight { return sighted(1, "https://10.0.0.1:2379", f) }
	h2 := func(f func(*sight)) sight { return sighted(2, "https://10.0.0.2:2379", f) } // leads
	h3 := func(f func(*sight)) sight { return sighted(3, "https://10.0.0.3:2379", f) }
	silent := func(s *sight) { s.err = bad }
	leaves := func(s *sight) { s.leaving[s.voter.id] = true }
	for _, c := range []struct {
		why    string
		host   string
		sights []sight
		now    int // in use, an index of sights; -1 for none
		local  int
		want   uint64
	}{
		{"its own voter, when one has to be chosen", "10.0.0.3", []sight{h1(nil), h2(nil), h3(nil)}, -1, 0, 3},
		{"else the leader", "10.0.0.9", []sight{h1(nil), h2(nil), h3(nil)}, -1, 0, 2},
		{"else any, always the same", "10.0.0.9", []sight{h3(nil), h1(nil), h2(silent)}, -1, 0, 1},
		{"the one in use stays", "10.0.0.9", []sight{h3(nil), h1(nil), h2(nil)}, 0, 0, 3},
		{"also beside its own that is new", "10.0.0.1", []sight{h3(nil), h1(nil)}, 0, 5, 3},
		{"its own once it has been well for long", "10.0.0.1", []sight{h3(nil), h1(nil)}, 0, settled, 1},
		{"the one in use is silent", "10.0.0.9", []sight{h3(silent), h1(nil), h2(nil)}, 0, 0, 2},
		{"its own is silent", "10.0.0.1", []sight{h1(silent), h2(nil), h3(nil)}, 0, 0, 2},
		{"the one in use is about to be removed", "10.0.0.3", []sight{h3(leaves), h1(nil), h2(nil)}, 0, 0, 2},
		{"its own newcomer takes over where the one in use leaves", "10.0.0.1", []sight{h3(leaves), h1(nil)}, 0, 5, 1},
		{"nobody else is well", "10.0.0.3", []sight{h3(leaves), h1(silent), h2(silent)}, 0, 0, 3},
		{"nobody is", "10.0.0.3", []sight{h1(silent), h2(silent)}, 0, 0, 0},
	} {
		g := &guide{Endpoint: &Endpoint{o: Options{Address: netip.MustParseAddr(c.host)}}, local: c.local}
		var now *voter
		if c.now >= 0 {
			now = c.sights[c.now].voter
		}
		got := uint64(0)
		if s := g.best(c.sights, now); s != nil {
			got = s.voter.id
		}
		if got != c.want {
			t.Errorf("%s: led to %d, want %d", c.why, got, c.want)
		}
	}
}

// TestVoters: learners, and members that have never started, are nobody to be led to.
func TestVoters(t *testing.T) {
	got := voters([]*pb.Member{{ID: 1, ClientURLs: []string{"http://10.0.0.1:2379/", "http://10.0.0.1:1"}}, {ID: 2, IsLearner: true, ClientURLs: []string{"http://10.0.0.2:2379"}}, {ID: 3}})
	if len(got) != 1 || got[0] != "http://10.0.0.1:2379" {
		t.Errorf("led to %q", got)
	}
}

func TestListen(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "127.0.0.1:2379": true, "[::1]:2379": true, "127.0.1.4:2378": true,
		"0.0.0.0:2379": false, "100.64.0.1:2379": false, "localhost:2379": false, "127.0.0.1": false, "127.0.0.1:0": false,
	} {
		if err := (Config{Listen: text}).Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
