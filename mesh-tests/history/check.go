package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Violation is a key for which no order of its operations explains what was seen.
type Violation struct {
	Key string
	// Operations are all of that key.
	Operations int
	// Hint is the first read that no order can explain by itself, empty where
	// only several together cannot be.
	Hint string
}

func (v *Violation) Error() string {
	s := fmt.Sprintf("history: key %s: no order of its %d operations explains what was read", v.Key, v.Operations)
	if v.Hint != "" {
		s += ": " + v.Hint
	}
	return s
}

// ErrUndecided: the check took longer than it may; nothing is said about the history.
var ErrUndecided = errors.New("history: not decided in time")

// patience bounds the search of one key; it is exponential only in how many
// calls are under way at once.
const patience = 2 * time.Minute

// Check gives nil when the history is linearizable, a *Violation where it is
// not, and ErrUndecided where that could not be found out.
func Check(h History) error {
	keys := map[string][]porcupine.Operation{}
	shown := h.shown()
	for _, o := range h {
		if o.Unknown && o.Put == "" {
			continue // a get without an answer saw nothing
		}
		p := porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Return: int64(o.Return)}
		if o.Unknown {
			by, read := shown[value{o.Key, o.Put}]
			if !read {
				continue // an order without it is as good
			}
			p.Return = max(by, p.Call)
		}
		keys[o.Key] = append(keys[o.Key], p)
	}
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		switch porcupine.CheckOperationsTimeout(register, keys[k], patience) {
		case porcupine.Illegal:
			return &Violation{Key: k, Operations: len(keys[k]), Hint: hint(h, k)}
		case porcupine.Unknown:
			return fmt.Errorf("%w: key %s with %d operations", ErrUndecided, k, len(keys[k]))
		}
	}
	return nil
}

type value struct{ key, put string }

// shown is by when a value that was read had been written: the return of the
// first get that shows it, or the end of time where several puts wrote it. A put
// without an answer may come at any time from its call on, and each one that is
// left open to the end doubles the orders to be searched.
func (h History) shown() map[value]int64 {
	puts, by := map[value]int{}, map[value]int64{}
	for _, o := range h {
		if o.Put != "" {
			puts[value{o.Key, o.Put}]++
		}
	}
	for _, o := range h {
		v := value{o.Key, o.Got}
		switch at, seen := by[v]; {
		case o.Put != "" || o.Unknown || o.Got == "":
		case puts[v] > 1:
			by[v] = math.MaxInt64
		case !seen || int64(o.Return) < at:
			by[v] = int64(o.Return)
		}
	}
	return by
}

// register holds one value, empty at first.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		if o := input.(Operation); o.Put != "" {
			return true, o.Put
		} else {
			return o.Got == state, state
		}
	},
}

// hint finds a read of what was never written, or a read of something old: one
// that began after another put had been acknowledged that began after the
// put that it shows was acknowledged.
func hint(h History, key string) string {
	puts := map[string]Operation{}
	var acknowledged, gets []Operation
	for _, o := range h {
		switch {
		case o.Key != key:
		case o.Put != "":
			puts[o.Put] = o
			if !o.Unknown {
				acknowledged = append(acknowledged, o)
			}
		case !o.Unknown:
			gets = append(gets, o)
		}
	}
	slices.SortFunc(gets, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, g := range gets {
		from, written := puts[g.Got]
		if g.Got != "" && !written {
			return fmt.Sprintf("client %d read %q at %v, which nobody wrote", g.Client, g.Got, g.Call)
		}
		if from.Unknown {
			continue // it may have come at any time
		}
		for _, p := range acknowledged {
			if p.Return < g.Call && (g.Got == "" || from.Return < p.Call) {
				return fmt.Sprintf("client %d read %q at %v, after %q had been acknowledged at %v", g.Client, g.Got, g.Call, p.Put, p.Return)
			}
		}
	}
	return ""
}
