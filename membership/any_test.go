package membership

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"suffrage/fitness"
)

// anyFleet draws a fleet in which most things are as they should be, so that
// many a decision is a plan, and any of what can be wrong may be. It draws from
// a seed, since rapid's own draws prefer the ends of a range and so would make
// nearly every fleet wrong in several ways.
func anyFleet(t *rapid.T) Inputs {
	r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
	one := func(of int) bool { return r.Intn(of) == 0 }
	voters, standbys := []int{3, 3, 3, 3, 5, 5, 7, 1, 2, 4, 6}[r.Intn(11)], r.Intn(5)
	f := newFleet(voters, standbys)
	f.in.Policy.Target = max(3, voters-1+voters%2)
	in := f.in
	ago := func() time.Time { return in.Now.Add(-time.Duration(r.Intn(3660)-60) * time.Second) }
	for i := range in.View.Members {
		m := &in.View.Members[i]
		if one(60) {
			m.Responding, m.Since = false, ago()
		}
		if one(60) {
			m.Leader = []string{"", "m-h2", "m-h9"}[r.Intn(3)]
		}
		if one(60) {
			m.Host = []string{"", "h1", "h99"}[r.Intn(3)]
		}
		if one(60) {
			m.Version = "3.6.4"
		}
		if one(60) {
			m.RaftIndex = 0
		}
	}
	if one(20) {
		in.View.Members = append(in.View.Members, Member{ID: "m-new", Host: fmt.Sprintf("h%d", voters+1), Name: "new", Learner: true})
		for i := range in.View.Members {
			in.View.Members[i].Opinion = opinion(in.View.Members)
		}
	}
	if one(20) {
		in.View.Alarms = []Alarm{{Member: "m-h1", Kind: "NOSPACE"}, {Member: "m-h2", Kind: "CORRUPT"}}
	}
	if one(20) {
		in.View.Error = "no quorum"
	}
	if one(40) {
		in.View.Downgrade = "3.6.0"
	}
	if one(5) {
		in.View.MembershipChanged = ago()
	}
	for i := range r.Intn(3) {
		in.Operations = append(in.Operations, Operation{ID: fmt.Sprint("op-", i), Ended: ago().Add(-10 * time.Minute)})
	}
	for i := range in.View.Hosts {
		h := &in.View.Hosts[i]
		if one(5) {
			h.Mark = []Mark{{}, {Eligible: &Say{}}, {Pinned: &Say{Value: true, By: "owner"}}}[r.Intn(3)]
		}
		if one(60) {
			h.Reachable, h.Since = false, ago()
		}
		if one(3) {
			h.Facts.Link.Class = []fitness.LinkClass{"wifi", "wifi", "unknown"}[r.Intn(3)]
		}
		if one(2) {
			h.Facts.Zone = []string{"a", "b"}[r.Intn(2)]
		}
	}
	in.Readings = anyReadings(r, f)
	if one(2) {
		in.Previous = &Previous{Key: []string{"steady", "plan h1>h4", "plan h3>h5"}[r.Intn(3)], Since: ago()}
	}
	return in
}

// anyReadings makes a few hosts slow, and a few readings anything.
func anyReadings(r *rand.Rand, f *fleet) []fitness.Reading {
	slow := map[string]bool{}
	for _, h := range f.in.View.Hosts {
		slow[h.Name] = r.Intn(5) == 0
	}
	keys := make([]reading, 0, len(f.series))
	for k := range f.series {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b reading) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	odd := []int{40, 400, 100000}[r.Intn(3)]
	var out []fitness.Reading
	for _, k := range keys {
		read := fitness.Reading{Signal: k.signal, Host: k.host, Peer: k.peer, Band: fitness.Under, Held: fitness.Whole, Count: 100,
			Figure: 0.01, Limit: f.in.Policy.Limits.For(k.signal, 8<<30), Since: testNow.Add(-time.Hour)}
		if k.signal == fitness.RTT && (slow[k.host] || slow[k.peer]) || r.Intn(odd) == 0 {
			read.Band, read.Figure = fitness.Over, 0.15
		}
		if r.Intn(odd) == 0 {
			read.Band = []fitness.Band{fitness.Over, fitness.Between, fitness.Unknown, fitness.Under}[r.Intn(4)]
			read.Held, read.LostNow, read.Figure = r.Intn(fitness.Whole+1), r.Intn(5), fitness.Figure(r.Float64())
		}
		if r.Intn(5*odd) != 0 {
			out = append(out, read)
		}
	}
	return out
}

func shuffled[T any](r *rand.Rand, s []T) []T {
	s = slices.Clone(s)
	r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}

// scramble sets one value somewhere in v to something that it should not be.
func scramble(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Addr().Interface().(*time.Time); ok {
			*at = time.Unix(rapid.Int64Range(-1<<33, 1<<33).Draw(t, "time"), 0)
			return
		}
		scramble(t, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field")))
	case reflect.Slice:
		if v.Len() > 0 && rapid.Bool().Draw(t, "inside") {
			scramble(t, v.Index(rapid.IntRange(0, v.Len()-1).Draw(t, "index")))
			return
		}
		n := rapid.IntRange(0, 14).Draw(t, "length")
		s := reflect.MakeSlice(v.Type(), n, n)
		for i := range n {
			if v.Len() > 0 {
				s.Index(i).Set(v.Index(i % v.Len()))
			}
		}
		v.Set(s)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "h1", "h2", "h3", "m-h2", "rtt", "over", "wal_fsync", "\x00—"}).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "number"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "number"))
	default:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	}
}
