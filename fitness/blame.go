package fitness

import (
	"fmt"
	"slices"
	"sort"
)

// Pair is two hosts whose round trips violate the voters' limit, A before B by name.
type Pair struct {
	A string `json:"a"`
	B string `json:"b"`
}

func (p Pair) String() string { return p.A + "–" + p.B }

// has reports whether the host is an end of the pair.
func (p Pair) has(host string) bool { return p.A == host || p.B == host }

// Fleet is what blame is found in.
type Fleet struct {
	// Voters are the hosts that vote.
	Voters []string
	// Others are the hosts that do not; they are witnesses.
	Others []string
	// Own holds the voters whose disk, memory or stability has been unfit for a
	// whole window. That is their own and needs no counterfactual.
	Own map[string]bool
	// Slow reports whether a pair has violated the voters' limit, in either
	// direction, for a whole window.
	Slow func(a, b string) bool
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
	// Hosts are the fewest voters that explain everything, sorted. More than the
	// cluster tolerates means a cause that they share: moving one will not help.
	Hosts []string
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
func Find(f Fleet) Blame {
	var b Blame
	voters := slices.Sorted(slices.Values(f.Voters))
	for i, x := range voters {
		for _, y := range voters[i+1:] {
			if f.Slow(x, y) {
				b.Pairs = append(b.Pairs, Pair{x, y})
			}
		}
	}
	// A pair with an end that is sick by itself is explained by it only when the
	// smallest sets say so too: a bad disk does not slow a ping.
	covers := covers(b.Pairs)
	b.Hosts = fewest(covers, f.Own)
	for _, v := range voters {
		s := Suspect{Host: v}
		for _, p := range b.Pairs {
			if p.has(v) {
				s.Clears++
			}
		}
		in := 0
		for _, c := range covers {
			if slices.Contains(c, v) {
				in++
			}
		}
		if in > 0 && in == len(covers) {
			b.Certain = append(b.Certain, v)
		}
		switch {
		case f.Own[v]:
			s.By = "own"
		case in == 0:
			continue
		case in == len(covers):
			s.By = "pairs"
		default:
			var keep bool
			if s.By, keep = f.witness(v, b.Pairs); !keep {
				continue
			}
		}
		b.Suspects = append(b.Suspects, s)
	}
	sort.SliceStable(b.Suspects, func(i, j int) bool {
		x, y := b.Suspects[i], b.Suspects[j]
		if sx, sy := x.By != "order", y.By != "order"; sx != sy {
			return sx
		}
		return x.Clears > y.Clears
	})
	return b
}

// witness asks the hosts outside the voters which end of v's violating pairs
// they find slow. keep is false when they clear v: they find the other end slow
// and not v.
func (f Fleet) witness(v string, pairs []Pair) (by string, keep bool) {
	slow := func(end string) bool {
		return slices.ContainsFunc(f.Others, func(w string) bool { return f.Slow(w, end) })
	}
	mine := slow(v)
	for _, p := range pairs {
		if !p.has(v) {
			continue
		}
		other := p.A
		if other == v {
			other = p.B
		}
		switch theirs := slow(other); {
		case mine && !theirs:
			return "witnesses", true
		case theirs && !mine:
			return "", false
		}
	}
	return "order", true
}

// covers gives every smallest set of hosts that has an end of each pair, each
// set sorted. The hosts of violating pairs are voters, so there are few: with
// nine, 512 sets are looked at.
func covers(pairs []Pair) [][]string {
	if len(pairs) == 0 {
		return nil
	}
	var hosts []string
	for _, p := range pairs {
		for _, h := range []string{p.A, p.B} {
			if !slices.Contains(hosts, h) {
				hosts = append(hosts, h)
			}
		}
	}
	slices.Sort(hosts)
	if len(hosts) > MaxVoters {
		panic(fmt.Sprintf("fitness: blame among %d voters; callers bound them to %d", len(hosts), MaxVoters))
	}
	best := len(hosts) + 1
	var out [][]string
	for set := 1; set < 1<<len(hosts); set++ {
		var c []string
		for i, h := range hosts {
			if set&(1<<i) != 0 {
				c = append(c, h)
			}
		}
		if len(c) > best || slices.ContainsFunc(pairs, func(p Pair) bool {
			return !slices.Contains(c, p.A) && !slices.Contains(c, p.B)
		}) {
			continue
		}
		if len(c) < best {
			best, out = len(c), nil
		}
		out = append(out, c)
	}
	return out
}

// MaxVoters bounds the voters of a cluster that is judged. etcd's guidance is
// at most seven; blame costs 2^n.
const MaxVoters = 11

// fewest joins the sick hosts with the cover that adds the fewest to them.
func fewest(covers [][]string, own map[string]bool) []string {
	var base []string
	for h, sick := range own {
		if sick {
			base = append(base, h)
		}
	}
	slices.Sort(base)
	best := base
	for i, c := range covers {
		all := slices.Clone(base)
		for _, h := range c {
			if !slices.Contains(all, h) {
				all = append(all, h)
			}
		}
		if i == 0 || len(all) < len(best) {
			slices.Sort(all)
			best = all
		}
	}
	return best
}
