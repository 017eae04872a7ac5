package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/fitness"
)

// diskAgent is as much of an Agent as a disk probe needs.
func diskAgent(period time.Duration) *Agent {
	begin := time.Now()
	a := &Agent{record: newRecord(func() int64 { return time.Now().UnixMicro() }), schedule: &schedule{slot: period / slots, begin: begin}}
	a.schedule.due.Store(int64(24 * time.Hour)) // never overdue
	a.o.Config.Period = fitness.Duration(period)
	return a
}

func TestHangingDiskIsSlowAndNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 3 * time.Second
		a := diskAgent(period)
		g := a.record.ring(fitness.WALFsync, "")
		took := 10 * time.Second
		w := a.disk("wal_fsync", g, func() (time.Duration, error) { time.Sleep(took); return took, nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() {
			w.loop(ctx, func(took time.Duration, err error) { a.record.ran(w.probe, took, err) })
			close(done)
		}()
		// One run of 10 s: asked at 0, unfinished at 3, 6 and 9.
		var hung []time.Duration
		for range 4 {
			if h, sofar := w.tick(0); h {
				hung = append(hung, sofar)
				a.record.hangs(w.probe, sofar, hangs(sofar))
			}
			synctest.Wait()
			time.Sleep(period)
		}
		s := a.record.report(0).Series[0]
		want := []float64{6, 9, 10} // 3 s is within its patience of two periods
		if len(s.Samples) != len(want) || len(hung) != 2 {
			t.Fatalf("samples %+v, want %v", s.Samples, want)
		}
		for i, m := range s.Samples {
			if m.Value != want[i] || m.State != fitness.Measured {
				t.Errorf("sample %d: %+v, want %v s", i, m, want[i])
			}
		}
		if s.Error != "" || !a.record.report(0).Facts.Probes[0].OK {
			t.Error("a slow run that ended well is not broken")
		}
		// A run that never ends while we look.
		took = time.Hour
		w.tick(0)
		synctest.Wait()
		time.Sleep(7 * time.Second)
		if h, sofar := w.tick(0); !h || !a.record.hangs(w.probe, sofar, hangs(sofar)) {
			t.Error("a hang after a good run is news")
		}
		got := a.record.report(0)
		if p := got.Facts.Probes[0]; p.OK || p.Error == "" || p.Seconds != 7 || got.Series[0].Error == "" {
			t.Errorf("%+v: a hanging probe shows as broken", p)
		}
		cancel()
		<-done
	})
}

func TestBrokenDiskFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := diskAgent(time.Second)
		g := a.record.ring(fitness.BackendCommit, "")
		w := a.disk("backend_commit", g, func() (time.Duration, error) { return 0, errors.New("no space: free some") })
		ctx, cancel := context.WithCancel(t.Context())
		go w.loop(ctx, func(took time.Duration, err error) { a.record.ran(w.probe, took, err) })
		w.tick(2 * time.Second)
		synctest.Wait()
		got := a.record.report(0)
		m := got.Series[0].Samples[0]
		if m.State != fitness.Failed || m.Late != 2 || got.Series[0].Error != "no space: free some" || got.Facts.Probes[0].OK {
			t.Errorf("%+v %+v", got.Series[0], got.Facts.Probes[0])
		}
		cancel()
	})
}

func TestOverdueTickSpoilsTheSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := diskAgent(time.Second)
		g := a.record.ring(fitness.WALFsync, "")
		a.schedule.due.Store(0)
		time.Sleep(300 * time.Millisecond) // the agent did not run: its tick is overdue
		a.note(g, 0.3, 0, nil)
		if m := a.record.report(0).Series[0].Samples[0]; m.Late != 0.3 {
			t.Errorf("late by %v s, want 0.3", m.Late)
		}
	})
}
