package fitness

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fleetOf has voters a to e, as many as given, witnesses w and x, and the slow
// pairs written "ab ac". Whoever is not slow with somebody is fast.
func fleetOf(voters int, slow, unmeasured string, own ...string) Fleet {
	in := func(pairs, a, b string) bool {
		return slices.ContainsFunc(strings.Fields(pairs), func(p string) bool { return p == a+b || p == b+a })
	}
	f := Fleet{Voters: strings.Split("abcdefg"[:voters], ""), Others: []string{"w", "x"}, Own: map[string]bool{},
		Slow: func(a, b string) bool { return in(slow, a, b) },
		Fast: func(a, b string) bool { return !in(slow, a, b) && !in(unmeasured, a, b) }}
	for _, o := range own {
		f.Own[o] = true
	}
	return f
}

func suspects(b Blame) string {
	var out []string
	for _, s := range b.Suspects {
		out = append(out, fmt.Sprintf("%s:%s:%d", s.Host, s.By, s.Clears))
	}
	return strings.Join(out, " ")
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		voters           int
		slow, unmeasured string
		own              []string
		hosts, possible  string
		certain          string
		suspects         string // surest first
		why              string
	}{
		{3, "", "", nil, "", "", "", "", "nothing is slow"},
		{3, "ac bc", "", nil, "c", "c", "c", "c:pairs:2", "one slow voter makes all three have a violating pair"},
		{3, "ab ac bc", "", nil, "a b", "a b c", "", "a:order:2 b:order:2 c:order:2", "any two explain a triangle"},
		{3, "ab", "", nil, "a", "a b", "", "a:order:1 b:order:1", "nothing tells between two ends"},
		{3, "ab wb", "", nil, "a", "a b", "", "b:witnesses:1", "a witness finds b slow too"},
		{3, "ab wb xb", "", nil, "a", "a b", "", "b:witnesses:1", "two witnesses do"},
		{3, "ab wa wb", "", nil, "a", "a b", "", "a:order:1 b:order:1", "a witness that is slow with both is slow itself"},
		{3, "ab wa xb", "", nil, "a", "a b", "", "a:order:1 b:order:1", "witnesses contradict each other"},
		{3, "ab wb", "wa", nil, "a", "a b", "", "a:order:1 b:order:1", "one that never measured a tells nothing of it"},
		{3, "ab wb", "wa xa", nil, "a", "a b", "", "a:order:1 b:order:1", "the other measured b, and found it fast"},
		{3, "ab wb xb", "wa", nil, "a", "a b", "", "b:witnesses:1", "the one that measured both is enough"},
		{3, "", "", []string{"b"}, "b", "b", "", "b:own:0", "a bad disk is its own"},
		{3, "ac bc", "", []string{"c"}, "c", "c", "c", "c:own:2", "one and the same"},
		{3, "ac bc", "", []string{"a"}, "a c", "a c", "c", "c:pairs:2 a:own:1", "a bad disk slows no ping: two are to blame"},
		{3, "ab", "", []string{"b"}, "b", "a b", "", "b:own:1 a:order:1", "of two explanations the one that adds nobody counts"},
		{5, "ab ac ad ae bc bd be", "", nil, "a b", "a b", "a b", "a:pairs:4 b:pairs:4", "two slow of five: no single removal clears anything"},
		{5, "ab ad ce", "", nil, "a c", "a c e", "a", "a:pairs:2 c:order:1 e:order:1", "a is certain, of c and e nothing tells"},
		{5, "ab bc cd", "", nil, "a c", "a b c d", "", "b:order:2 c:order:2 a:order:1 d:order:1", "a path: the middle clears more"},
		{5, "ab cd wb", "", nil, "a c", "a b c d", "", "b:witnesses:1 c:order:1 d:order:1", "two pairs, one of them settled"},
		{7, "ab ac ad ae af ag", "", nil, "a", "a", "a", "a:pairs:6", "a star"},
	} {
		b := Find(fleetOf(tt.voters, tt.slow, tt.unmeasured, tt.own...))
		got := []string{strings.Join(b.Hosts, " "), strings.Join(b.Possible, " "), strings.Join(b.Certain, " "), suspects(b)}
		if diff := cmp.Diff([]string{tt.hosts, tt.possible, tt.certain, tt.suspects}, got); diff != "" {
			t.Errorf("%s (%d voters, slow %q): hosts, possible, certain, suspects (-want +got):\n%s", tt.why, tt.voters, tt.slow, diff)
		}
	}
}

func anyGraph(t *rapid.T) (Fleet, string) {
	n := rapid.IntRange(1, 5).Draw(t, "voters")
	names := "abcde"[:n] + "wx"
	var slow, unmeasured []string
	for i := range names {
		for j := i + 1; j < len(names); j++ {
			switch pair := names[i:i+1] + names[j:j+1]; rapid.IntRange(0, 3).Draw(t, pair) {
			case 1:
				slow = append(slow, pair)
			case 2:
				unmeasured = append(unmeasured, pair)
			}
		}
	}
	var own []string
	for _, v := range names[:n] {
		if rapid.IntRange(0, 4).Draw(t, "own") == 1 {
			own = append(own, string(v))
		}
	}
	return fleetOf(n, strings.Join(slow, " "), strings.Join(unmeasured, " "), own...), strings.Join(slow, " ")
}

// everyRemoval is deliberately dumb and asks the question of the design: who could go so that nothing violates?
// It removes every combination of hosts, the smallest first, and looks.
func everyRemoval(f Fleet) (smallest [][]string) {
	for size := 0; size <= len(f.Voters) && smallest == nil; size++ {
		var try func(from int, gone []string)
		try = func(from int, gone []string) {
			if len(gone) == size {
				for _, a := range f.Voters {
					for _, b := range f.Voters {
						if a != b && f.Slow(a, b) && !slices.Contains(gone, a) && !slices.Contains(gone, b) {
							return
						}
					}
				}
				smallest = append(smallest, slices.Clone(gone))
				return
			}
			for i := from; i < len(f.Voters); i++ {
				try(i+1, append(slices.Clone(gone), f.Voters[i]))
			}
		}
		try(0, nil)
	}
	return smallest
}

func TestFindAgreesWithTryingEveryRemoval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, slow := anyGraph(t)
		b := Find(f)
		sets := everyRemoval(f)
		for _, v := range f.Voters {
			in := 0
			for _, s := range sets {
				if slices.Contains(s, v) {
					in++
				}
			}
			if got, want := slices.Contains(b.Certain, v), in == len(sets); got != want {
				t.Errorf("slow %q: %s certainly to blame: %v, trying says %v", slow, v, got, want)
			}
			if got, want := slices.Contains(b.Possible, v), in > 0 || f.Own[v]; got != want {
				t.Errorf("slow %q: %s possibly to blame: %v, trying says %v", slow, v, got, want)
			}
			s := slices.IndexFunc(b.Suspects, func(s Suspect) bool { return s.Host == v })
			if s >= 0 && in == 0 && !f.Own[v] {
				t.Errorf("slow %q: %s is suspected and explains nothing", slow, v)
			}
			if s < 0 && (in == len(sets) || f.Own[v]) {
				t.Errorf("slow %q: %s is certainly to blame and not suspected", slow, v)
			}
		}
		// Where the removal of exactly one voter clears everything, it is to blame.
		if len(sets) == 1 && len(sets[0]) == 1 && (len(b.Suspects) == 0 || !slices.Contains(b.Certain, sets[0][0])) {
			t.Errorf("slow %q: only without %s nothing violates, and yet %+v", slow, sets[0], b)
		}
		// Whoever is blamed explains everything, and witnesses never clear all.
		for _, p := range b.Pairs {
			if !slices.Contains(b.Hosts, p.A) && !slices.Contains(b.Hosts, p.B) {
				t.Errorf("slow %q: %s is not explained by %v", slow, p, b.Hosts)
			}
			if !slices.ContainsFunc(b.Suspects, func(s Suspect) bool { return s.Host == p.A || s.Host == p.B || len(sets) > 1 }) {
				t.Errorf("slow %q: nobody is suspected for %s", slow, p)
			}
		}
		if len(b.Pairs) > 0 && len(b.Suspects) == 0 {
			t.Errorf("slow %q: nobody is suspected", slow)
		}
	})
}

func TestFindDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _ := anyGraph(t)
		want := Find(f)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		f.Voters, f.Others = slices.Clone(f.Voters), slices.Clone(f.Others)
		r.Shuffle(len(f.Voters), func(i, j int) { f.Voters[i], f.Voters[j] = f.Voters[j], f.Voters[i] })
		r.Shuffle(len(f.Others), func(i, j int) { f.Others[i], f.Others[j] = f.Others[j], f.Others[i] })
		if diff := cmp.Diff(want, Find(f)); diff != "" {
			t.Errorf("in another order (-one +other):\n%s", diff)
		}
	})
}

func TestFindIsBounded(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("blame among more voters than MaxVoters has to be our own bug")
		}
	}()
	f := fleetOf(3, "", "")
	for i := range MaxVoters {
		f.Voters = append(f.Voters, fmt.Sprint(i))
	}
	Find(f)
}

// The most voters that are judged, all slow with each other: 2^11 sets.
func BenchmarkFind(b *testing.B) {
	f := Fleet{Slow: func(string, string) bool { return true }, Fast: func(string, string) bool { return false }}
	for i := range MaxVoters {
		f.Voters = append(f.Voters, fmt.Sprint(i))
	}
	for b.Loop() {
		Find(f)
	}
}
