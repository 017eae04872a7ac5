package control

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// moments reads what a directory holds, oldest first.
func moments(t *testing.T, dir string) (out []membership.Moment) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*"+TimelineSuffix))
	slices.Sort(files)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			m, err := membership.ReadMoment(line)
			if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			out = append(out, m)
		}
	}
	return out
}

// What a loop keeps says at every time what the newest decision said, to a round
// where it changed, and no pause in it is longer than the one that it announces.
func TestTimelineOfALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFleet(period, 3, 2)
		dir := t.TempDir()
		r := prepare(t, f)
		r.loop.Timeline = &Timeline{Dir: dir, MaxBytes: 256 << 20}
		r.run(t)
		began := time.Now()
		r.after(2 * window)
		f.do(func() { f.slow["h3"] = time.Now() })
		r.after(whole + window)
		got := moments(t, dir)
		var kinds []string
		for i, m := range got {
			k := string(m.Kind) + " " + m.Out + m.In
			if len(kinds) == 0 || kinds[len(kinds)-1] != k {
				kinds = append(kinds, k)
			}
			if i > 0 && m.At.Sub(got[i-1].At) > got[i-1].Next.Std() {
				t.Errorf("%s after %s, which announced the next within %s", m.At, got[i-1].At, got[i-1].Next)
			}
		}
		if want := "refused ,steady ,refused ,plan h3h4"; strings.Join(kinds, ",") != want {
			t.Errorf("it says %q, want %q", strings.Join(kinds, ","), want)
		}
		last := got[len(got)-1]
		if time.Since(last.At) > last.Next.Std() || !slices.Equal(last.Voters, []string{"h1", "h2", "h3"}) || last.Figures["rtt h1 h3"][0] != 0.15 {
			t.Errorf("the last moment is %+v", last)
		}
		if n, most := len(got), int(time.Since(began)/(10*time.Second)); n > most {
			t.Errorf("%d moments, want at most one in 10 s, %d", n, most)
		}
	})
}

// played is one round that a test makes up.
func played(at time.Time, hosts int, key int) (membership.Inputs, membership.Decision) {
	in := membership.Inputs{Now: at, Policy: membership.Policy{Period: fitness.Duration(period), Limits: fitness.DefaultLimits()}}
	d := membership.Decision{Kind: membership.Refused, Refusals: []membership.Refusal{{Code: "alarm", Subject: fmt.Sprint(key)}}}
	for i := range hosts {
		for j := range 7 {
			in.Readings = append(in.Readings, fitness.Reading{Signal: fitness.RTT, Host: fmt.Sprint("h", i), Peer: fmt.Sprint("v", j), Band: fitness.Under, Figure: 0.00123456})
		}
	}
	return in, d
}

// Whatever a fleet does, a day takes a bounded part of the space: weeks fit.
func TestTimelineIsBounded(t *testing.T) {
	for _, test := range []struct {
		why          string
		hosts, days  int
		every        time.Duration // between two rounds
		swings       bool
		atLeast, max int // moments of a day
	}{
		{"a small fleet: one a minute", 5, 2, 20 * time.Second, false, 1430, 1442},
		{"a large one: as often as there is room", 400, 2, 5 * time.Minute, false, 20, 200},
		{"one that swings at every round: until the day's room is used, then one a minute", 5, 1, 5 * time.Second, true, 1430, 8700},
	} {
		dir := t.TempDir()
		line := &Timeline{Dir: dir, MaxBytes: 128 << 20} // a day has 4 MiB
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		changes := 0
		for end := at.AddDate(0, 0, test.days); at.Before(end); at = at.Add(test.every) {
			if test.swings {
				changes++
			}
			in, d := played(at, test.hosts, changes)
			if err := line.Note(in, d); err != nil {
				t.Fatal(err)
			}
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"+TimelineSuffix))
		if len(files) != test.days {
			t.Errorf("%s: files %v, want one a day", test.why, files)
		}
		for _, f := range files {
			if info, _ := os.Stat(f); info.Size() > 6<<20 {
				t.Errorf("%s: %s has %d bytes", test.why, f, info.Size())
			}
		}
		got := moments(t, dir)
		if n := len(got) / test.days; n < test.atLeast || n > test.max {
			t.Errorf("%s: %d moments a day, want %d to %d", test.why, n, test.atLeast, test.max)
		}
		said := 0
		for _, m := range got {
			said += m.Changes
		}
		if test.swings && said < changes-20 {
			t.Errorf("%s: it counts %d changes of %d", test.why, said, changes)
		}
	}
}

func TestTimelineDropsTheOldestDay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"20250101" + TimelineSuffix, "20250102" + TimelineSuffix, "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 600), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, d := played(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), 1, 1)
	if err := (&Timeline{Dir: dir, MaxBytes: 1700}).Note(in, d); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := "20250102.timeline.jsonl 20260101.timeline.jsonl notes.txt"; strings.Join(left, " ") != want {
		t.Errorf("left are %v, want %s", left, want)
	}
}

// A power cut leaves half a line; the next moment must not be lost in it.
func TestTimelineCutsOffHalfALine(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	in, d := played(at, 1, 1)
	if err := (&Timeline{Dir: dir, MaxBytes: 1 << 20}).Note(in, d); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "20260101"+TimelineSuffix)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	half := append(slices.Clone(data), bytes.Repeat([]byte{0}, 100<<10)...) // as ext4 may leave it
	if err := os.WriteFile(file, half, 0o600); err != nil {
		t.Fatal(err)
	}
	in.Now = at.Add(time.Minute)
	if err := (&Timeline{Dir: dir, MaxBytes: 1 << 20}).Note(in, d); err != nil {
		t.Fatal(err)
	}
	if got := moments(t, dir); len(got) != 2 {
		t.Errorf("%d moments, want the one before and the one after", len(got))
	}
}
