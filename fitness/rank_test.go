package fitness

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	rankRTT = Limit{Voter: 0.1, Candidate: 0.05}
	rankWAL = Limit{Voter: 0.01, Candidate: 0.01}
)

func ms(n float64) Figure { return Figure(n / 1e3) }

// Each standing is better than the next by one thing only, though worse by all
// that weighs less.
func TestRankFirstDifferenceWins(t *testing.T) {
	gib := Figure(1 << 30)
	order := []Standing{
		{Host: "z", Crowd: 1, Link: Cellular, Relayed: true, WorstRTT: ms(49), WAL: ms(9)},
		{Host: "y", Crowd: 2, Link: Wired, WorstRTT: ms(49), WAL: ms(9)},
		{Host: "x", Crowd: 2, Link: Virtual, WorstRTT: ms(48), WAL: ms(9)},
		{Host: "w", Crowd: 2, Link: Wifi, WorstRTT: ms(47), WAL: ms(9)},
		{Host: "v", Crowd: 2, Link: Cellular, WorstRTT: ms(46), WAL: ms(9)},
		{Host: "u", Crowd: 2, Link: Wired, Relayed: true, WorstRTT: ms(11), WAL: ms(9)},
		{Host: "t", Crowd: 2, Link: Wired, Relayed: true, WorstRTT: ms(16), WAL: ms(2.5)},
		{Host: "s", Crowd: 2, Link: Wired, Relayed: true, WorstRTT: ms(16), WAL: ms(3.5), Headroom: 9 * gib},
		{Host: "q", Crowd: 2, Link: Wired, Relayed: true, WorstRTT: ms(16), WAL: ms(3.5), Headroom: 8 * gib},
		// Below a step the difference is noise: the name decides.
		{Host: "r", Crowd: 2, Link: Wired, Relayed: true, WorstRTT: ms(15.1), WAL: ms(3.1), Headroom: 8*gib + 1},
	}
	got := slices.Clone(order)
	rand.New(rand.NewSource(1)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, func(a, b Standing) int { return a.Compare(b, rankRTT, rankWAL) })
	if diff := cmp.Diff(order, got); diff != "" {
		t.Errorf("ranked (-want +got):\n%s", diff)
	}
}

// The order is total: of two, one is first, and of three no circle.
func TestRankIsATotalOrder(t *testing.T) {
	standing := rapid.Custom(func(t *rapid.T) Standing {
		f := rapid.SampledFrom([]Figure{0, ms(1), ms(4), ms(5), ms(5.1), ms(49), ms(1e6), Inf})
		return Standing{Host: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "host"), Crowd: rapid.IntRange(0, 2).Draw(t, "crowd"),
			Link:    rapid.SampledFrom([]LinkClass{Wired, Wifi, Cellular, Virtual, UnknownLink, ""}).Draw(t, "link"),
			Relayed: rapid.Bool().Draw(t, "relayed"), WorstRTT: f.Draw(t, "rtt"), WAL: f.Draw(t, "wal"),
			Headroom: rapid.SampledFrom([]Figure{0, 1 << 29, 1 << 30, 1 << 33}).Draw(t, "headroom")}
	})
	limits := DefaultLimits()
	limits.ElectionTimeout = Duration(5 * time.Second)
	rtt, wal := limits.For(RTT, 0), limits.For(WALFsync, 0)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := standing.Draw(t, "a"), standing.Draw(t, "b"), standing.Draw(t, "c")
		if a.Host != b.Host && a.Compare(b, rtt, wal) == 0 {
			t.Errorf("neither of %s and %s is first", a, b)
		}
		if a.Compare(b, rtt, wal) != -b.Compare(a, rtt, wal) {
			t.Errorf("the order of %s and %s depends on who asks", a, b)
		}
		if a.Compare(b, rtt, wal) < 0 && b.Compare(c, rtt, wal) < 0 && a.Compare(c, rtt, wal) >= 0 {
			t.Errorf("%s, %s, %s go in a circle", a, b, c)
		}
	})
}
