package fitness

import "math"

// Window holds the newest WindowSize entries of a signal and keeps their
// numbers sorted, so that a percentile is one read. Adding costs a search and
// one move inside a fixed array: no allocation, no sort. The zero value is an
// empty window.
type Window struct {
	ring   [WindowSize]float64 // NaN where an entry has no number
	sorted [WindowSize]float64
	next   int // place of the next entry in ring
	filled int // entries in ring
	n      int // numbers in sorted
}

// Add takes one number in and, when the window is full, the oldest entry out.
// +Inf (a lost ping) is a number; NaN is none, it is an entry that failed, and
// the window is not full again until it has moved out.
func (w *Window) Add(v float64) {
	if w.filled == WindowSize {
		w.drop(w.ring[w.next])
	} else {
		w.filled++
	}
	w.ring[w.next] = v
	w.next = (w.next + 1) % WindowSize
	if math.IsNaN(v) {
		return
	}
	i := w.search(v)
	copy(w.sorted[i+1:w.n+1], w.sorted[i:w.n])
	w.sorted[i] = v
	w.n++
}

func (w *Window) drop(v float64) {
	if math.IsNaN(v) {
		return
	}
	i := w.search(v)
	copy(w.sorted[i:w.n-1], w.sorted[i+1:w.n])
	w.n--
}

// AddFailed takes in an entry that has no number.
func (w *Window) AddFailed() { w.Add(math.NaN()) }

// search finds the first place whose number is not below v. It is written out
// because sort.Search would cost a closure call per step.
func (w *Window) search(v float64) int {
	lo, hi := 0, w.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if w.sorted[mid] < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Count is the number of numbers in the window, 0 to WindowSize.
func (w *Window) Count() int { return w.n }

// Full reports whether every entry of the window is a number.
func (w *Window) Full() bool { return w.n == WindowSize }

// P99 is the nearest-rank 99th percentile of a full window: its 99th smallest
// number, so one outlier in 100 passes and two do not. Ask Full first; a window
// that is not full has no p99 and gives 0.
func (w *Window) P99() Figure { return w.rank(99) }

// P50 is the 50th smallest number of a full window.
func (w *Window) P50() Figure { return w.rank(50) }

func (w *Window) rank(r int) Figure {
	if !w.Full() {
		return 0
	}
	return Figure(w.sorted[r-1])
}

// Max is the largest number of the window, 0 when there is none.
func (w *Window) Max() Figure {
	if w.n == 0 {
		return 0
	}
	return Figure(w.sorted[w.n-1])
}

// Min is the smallest number of the window, 0 when there is none.
func (w *Window) Min() Figure {
	if w.n == 0 {
		return 0
	}
	return Figure(w.sorted[0])
}

// Failed is the number of entries that have no number.
func (w *Window) Failed() int { return w.filled - w.n }

// Lost is the number of entries that are lost pings.
func (w *Window) Lost() int { return w.n - w.search(math.Inf(1)) }
