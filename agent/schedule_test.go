package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type fired struct {
	N        int64
	At, Late time.Duration
}

func TestSchedule(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		why   string
		stall map[int64]time.Duration // how long tick n keeps the agent
		want  []fired
	}{
		{"one tick per slot, none late", nil,
			[]fired{{0, 0, 0}, {1, s, 0}, {2, 2 * s, 0}, {3, 3 * s, 0}, {4, 4 * s, 0}}},
		{"the tick after a stall is late, and the next is on time again", map[int64]time.Duration{1: 1500 * time.Millisecond},
			[]fired{{0, 0, 0}, {1, s, 0}, {2, 2500 * time.Millisecond, s / 2}, {3, 3 * s, 0}, {4, 4 * s, 0}}},
		{"within a period nothing is left out", map[int64]time.Duration{1: 3 * s},
			[]fired{{0, 0, 0}, {1, s, 0}, {2, 4 * s, 2 * s}, {3, 4 * s, s}, {4, 4 * s, 0}}},
		{"missed periods are left out, slots keep their numbers", map[int64]time.Duration{1: 10 * s},
			[]fired{{0, 0, 0}, {1, s, 0}, {2, 11 * s, 9 * s}, {11, 11 * s, 0}, {12, 12 * s, 0}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			begin := time.Now()
			sched := &schedule{slot: s, begin: begin}
			var got []fired
			sched.run(ctx, func(n int64, late time.Duration) {
				got = append(got, fired{n, time.Since(begin), late})
				time.Sleep(tt.stall[n])
				if len(got) == len(tt.want) {
					cancel()
				}
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.why, diff)
			}
		})
	}
}

func TestScheduleKnowsThatItIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		sched := &schedule{slot: time.Second, begin: time.Now()}
		stalled := make(chan bool)
		go sched.run(ctx, func(n int64, _ time.Duration) {
			if n == 1 {
				<-stalled
			}
		})
		time.Sleep(2500 * time.Millisecond) // tick 1 came at 1 s, tick 2 was due at 2 s
		if got := sched.overdue(); got != 500*time.Millisecond {
			t.Errorf("overdue by %v, want 500ms", got)
		}
		close(stalled)
		synctest.Wait()
		if got := sched.overdue(); got != 0 {
			t.Errorf("overdue by %v after the stall, want 0", got)
		}
		cancel()
		synctest.Wait()
	})
}
