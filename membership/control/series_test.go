package control

import (
	"testing"
	"testing/synctest"

	"suffrage/fitness"
)

// Whoever shows windows reads them while rounds go on, and gets copies.
func TestSeriesWhileRoundsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newTestFleet(period, 3, 2))
		r.after(2 * window)
		s := r.loop.Last()
		if got := s.Series("h9"); got != nil {
			t.Errorf("a host that is not there has %d series", len(got))
		}
		done := make(chan int)
		go func() {
			n := 0
			for range 200 {
				for _, one := range s.Series("h1") {
					n = max(n, len(one.Samples))
					clear(one.Samples) // ours to spoil
				}
			}
			done <- n
		}()
		r.after(window)
		if n := <-done; n < fitness.WindowSize {
			t.Errorf("at most %d samples", n)
		}
		for _, v := range r.loop.Last().Decision.Verdicts {
			if v.Status != fitness.Fit {
				t.Errorf("%s is %s", v.Host, v)
			}
		}
	})
}
