package memtest

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// swaps counts the runs of the exhaustive tests, which all go on at once.
var swaps = progress{what: "swaps with faults"}

// progress tells on stderr how far a long test is: after two seconds, then every
// ten.
type progress struct {
	what string
	mu   sync.Mutex
	done int
	began,
	next time.Time
}

// one more is done, of so many, or of nobody knows how many.
func (p *progress) one(of int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.done++; p.done == 1 {
		p.began, p.next = now, now.Add(2*time.Second)
	}
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(10 * time.Second)
	all := ""
	if of > 0 {
		all = fmt.Sprintf(" of %d", of)
	}
	fmt.Fprintf(os.Stderr, "%d%s %s, %s\n", p.done, all, p.what, now.Sub(p.began).Round(time.Second))
}
