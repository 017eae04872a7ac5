package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// CheckReads says why the gets of a history prove nothing, nil where they do:
// without an answer a get agrees with everything, and so does a lost write that
// nobody read afterwards. Of each key that was ever read, the last get has to
// have an answer, and to have been called after every acknowledged put.
func CheckReads(h History) error {
	last, written := map[string]Operation{}, map[string]time.Duration{}
	for _, o := range h {
		switch g, read := last[o.Key]; {
		case o.Put == "" && (!read || o.Call > g.Call):
			last[o.Key] = o
		case o.Put != "" && !o.Unknown:
			written[o.Key] = max(written[o.Key], o.Return)
		}
	}
	if len(last) == 0 {
		return errors.New("history: nothing was read: nothing was proven")
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(last)) {
		switch g := last[key]; {
		case g.Unknown:
			errs = append(errs, fmt.Errorf("history: key %s: the last get, at %v, had no answer: nothing tells whether what was written is there", key, g.Call))
		case g.Call < written[key]:
			errs = append(errs, fmt.Errorf("history: key %s: the last get is from %v, and a put was acknowledged at %v: nobody looked whether it is there", key, g.Call, written[key]))
		}
	}
	return errors.Join(errs...)
}
