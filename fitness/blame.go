package fitness

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"
)

// MaxVoters bounds the voters of a cluster that is judged. etcd's guidance is
// at most seven; blame costs 2^n.
const MaxVoters = 11

// Pair is two hosts whose round trips violate the voters' limit, A before B by name.
type Pair struct {
	A string `json:"a"`
	B string `json:"b"`
}

func (p Pair) String() string { return p.A + "–" + p.B }

// Fleet is what blame is found in.
type Fleet struct {
	// Voters are the hosts that vote, at most MaxVoters.
	Voters []string
	// Others are the hosts that do not; they are witnesses.
	Others []string
	// Own holds the voters whose disk, memory or stability is unfit. That is
	// their own and needs no counterfactual.
	Own map[string]bool
	// Slow reports whether a pair violates the voters' limit, in either direction.
	Slow func(a, b string) bool
	// Fast reports whether a pair is known not to. A witness tells between two
	// ends only where it has measured both: one that never pinged an end has not
	// found it fast.
	Fast func(a, b string) bool
}

// Suspect is a voter that might be moved.
type Suspect struct {
	Host string
	// By says what makes it one: "own", its own signals; "pairs", no smallest
	// explanation of the slow pairs goes without it; "witnesses", hosts outside
	// the pair find it slow too; "order", nothing settles between the two ends.
	By string
	// Clears is how many violating pairs are gone once it does not vote.
	Clears int
}

// Blame is who is to be blamed for what is slow.
type Blame struct {
	// Pairs are the violating pairs among the voters, sorted.
	Pairs []Pair
	// Hosts are the sick voters and the smallest explanation of the slow pairs
	// that adds the fewest to them, sorted: how many are to blame. More than the
	// cluster tolerates means a cause that they share: moving one will not help.
	Hosts []string
	// Possible are the sick voters and those in any smallest explanation,
	// sorted: where two ends explain a pair equally well, Hosts names one of
	// them and Possible both.
	Possible []string
	// Certain are the voters that every smallest explanation of the slow pairs
	// holds, sorted: what is slow with one of them says nothing of the other end.
	Certain []string
	// Suspects are the voters that might be moved, the surest first, then by
	// the pairs that they clear, then by name.
	Suspects []Suspect
}

// Find lays slow pairs and sick hosts at the fewest voters that explain them.
//
// With three voters one slow voter makes all three have a violating pair, so
// counting bad pairs per host blames everybody. The fewest hosts whose absence
// would leave no violating pair (a smallest vertex cover) are the ones to
// blame; a host in every such set is certainly to blame, and one that is in
// some of them only is a suspect for the witnesses. With one slow voter this is
// the counterfactual "would the pairs be clear without it"; with several it
// still answers, where asking for each voter alone would not: with two slow
// voters of five, no single removal clears anything.
//
// A sick host does not explain its slow pairs: a bad disk slows no ping.
func Find(f Fleet) Blame {
	voters := slices.Compact(slices.Sorted(slices.Values(f.Voters)))
	if len(voters) > MaxVoters {
		panic(fmt.Sprintf("fitness: blame among %d voters; callers bound them to %d", len(voters), MaxVoters))
	}
	var b Blame
	var own set
	slow := make([]set, len(voters)) // per voter, those that it is slow with
	for i, x := range voters {
		if f.Own[x] {
			own |= 1 << i
		}
		for j := i + 1; j < len(voters); j++ {
			if f.Slow(x, voters[j]) {
				b.Pairs = append(b.Pairs, Pair{x, voters[j]})
				slow[i] |= 1 << j
				slow[j] |= 1 << i
			}
		}
	}
	covers := covers(slow)
	best, some, every := covers[0], set(0), ^set(0)
	for _, c := range covers {
		if (own | c).size() < (own | best).size() {
			best = c
		}
		some |= c
		every &= c
	}
	b.Hosts, b.Possible, b.Certain = (own | best).of(voters), (own | some).of(voters), every.of(voters)
	for i, v := range voters {
		s := Suspect{Host: v, Clears: slow[i].size()}
		switch {
		case own.has(i):
			s.By = "own"
		case every.has(i):
			s.By = "pairs"
		case some.has(i):
			s.By = f.settle(v, slow[i].of(voters))
		}
		if s.By != "" {
			b.Suspects = append(b.Suspects, s)
		}
	}
	sort.SliceStable(b.Suspects, func(i, j int) bool {
		x, y := b.Suspects[i], b.Suspects[j]
		if sure := x.By != "order"; sure != (y.By != "order") {
			return sure
		}
		return x.Clears > y.Clears
	})
	return b
}

// settle asks the hosts outside the voters which end of v's violating pairs
// they find slow too. It gives nothing when they clear v: in some pair they
// blame the other end, and in none v. Witnesses that contradict each other
// settle nothing.
func (f Fleet) settle(v string, others []string) (by string) {
	by = "order"
	for _, o := range others {
		mine := slices.ContainsFunc(f.Others, func(w string) bool { return f.Slow(w, v) && f.Fast(w, o) })
		theirs := slices.ContainsFunc(f.Others, func(w string) bool { return f.Slow(w, o) && f.Fast(w, v) })
		switch {
		case mine && !theirs:
			return "witnesses"
		case theirs && !mine:
			by = ""
		}
	}
	return by
}

// set is a set of voters, by their place in the sorted list.
type set uint16

func (s set) has(i int) bool { return s&(1<<i) != 0 }

func (s set) size() int { return bits.OnesCount16(uint16(s)) }

func (s set) of(voters []string) (names []string) {
	for i, v := range voters {
		if s.has(i) {
			names = append(names, v)
		}
	}
	return names
}

// covers gives every smallest set of voters that has an end of each slow pair;
// the empty set alone when no pair is slow.
func covers(slow []set) (smallest []set) {
	for c := range set(1) << len(slow) {
		if len(smallest) > 0 && c.size() > smallest[0].size() || !c.covers(slow) {
			continue
		}
		if len(smallest) > 0 && c.size() < smallest[0].size() {
			smallest = smallest[:0]
		}
		smallest = append(smallest, c)
	}
	return smallest
}

func (s set) covers(slow []set) bool {
	for i, ends := range slow {
		if !s.has(i) && ends&^s != 0 {
			return false
		}
	}
	return true
}
