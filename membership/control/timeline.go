package control

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// TimelineSuffix ends the names of a timeline's files, one per day (UTC).
const TimelineSuffix = ".timeline.jsonl"

// timelineDays is for how many days MaxBytes is to suffice, at least.
const timelineDays = 32

// Timeline keeps a moment whenever a round says something else, and one at least
// every minute: what `suffrage report` is made of, after weeks of dry-run.
//
// The directory never holds more than MaxBytes of them: the oldest day goes
// first. So that this is weeks and not hours, a large fleet is written down more
// seldom (a day of regular moments takes at most MaxBytes/64), and a decision
// that swings is not written each time, and no more once the day has taken
// MaxBytes/32 (Changes counts what is between).
//
// A line is not synced: a power cut may cost the last half minute, and what it
// left half written is cut off before the next line.
type Timeline struct {
	Dir      string
	MaxBytes int64

	last    membership.Moment // written
	every   time.Duration     // the longest time to the next one
	tried   time.Time         // to write
	key     string
	changes int
	worst   map[string]membership.Reach
}

// Begin forgets what was kept: the next round is written down.
func (t *Timeline) Begin() { *t = Timeline{Dir: t.Dir, MaxBytes: t.MaxBytes} }

// Note takes in one round, and writes its moment if one is due.
func (t *Timeline) Note(in membership.Inputs, d membership.Decision) error {
	m := membership.MomentOf(in, d)
	if k := d.Key(); k != t.key {
		t.key = k
		t.changes++
	}
	m.Worsen(t.worst)
	t.worst = m.Figures
	if !t.due(m, in.Policy.Window()) {
		return nil
	}
	t.tried = m.At
	m.Changes = t.changes
	line, err := t.line(&m, in.Policy.Window())
	if err == nil {
		err = t.write(filepath.Join(t.Dir, m.At.UTC().Format("20060102")+TimelineSuffix), line)
	}
	if err != nil {
		return err
	}
	t.last, t.changes, t.worst = m, 0, nil
	return nil
}

// due: nothing was written yet, or it was as long ago as it may be, or something
// changed and the one before is not just now. A clock that was set back is due.
func (t *Timeline) due(m membership.Moment, window time.Duration) bool {
	age := m.At.Sub(t.tried)
	switch {
	case t.tried.IsZero() || age < 0 || age >= t.every:
		return true
	case m.Same(t.last) && t.changes == 0:
		return false
	}
	return age >= regular(window)/6 && t.today(m.At) < t.MaxBytes/timelineDays
}

// regular is the time between two moments while nothing changes: five in a window.
func regular(window time.Duration) time.Duration {
	return min(max(window/5, time.Second), time.Minute)
}

// line writes the moment out, and says in it when the next one comes: a round
// later than is regular, or two.
func (t *Timeline) line(m *membership.Moment, window time.Duration) ([]byte, error) {
	m.Next = fitness.Duration(2 * max(regular(window), t.every))
	line, err := m.Append(nil)
	if err != nil {
		return nil, err
	}
	affordable := time.Duration(float64(24*time.Hour) * float64(len(line)) / float64(t.MaxBytes/timelineDays/2))
	t.every = max(regular(window), affordable.Round(time.Second))
	m.Next = fitness.Duration(2 * t.every)
	return m.Append(line[:0])
}

// today is the size of the day's file so far.
func (t *Timeline) today(at time.Time) int64 {
	if info, err := os.Stat(filepath.Join(t.Dir, at.UTC().Format("20060102")+TimelineSuffix)); err == nil {
		return info.Size()
	}
	return 0
}

// write appends a line whole or not at all.
func (t *Timeline) write(path string, line []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("control: keep timeline in %s: %w; free space there, or set controller.records elsewhere", t.Dir, err)
		}
	}()
	if err := os.MkdirAll(t.Dir, 0o750); err != nil {
		return err
	}
	if err := t.prune(filepath.Base(path), int64(len(line))); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	end, err := wholeLines(f)
	if err == nil {
		_, err = f.WriteAt(line, end)
		if err != nil {
			_ = f.Truncate(end)
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// wholeLines is where the file's last whole line ends. What is behind it was half
// written, and is cut off.
func wholeLines(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	end := size
	buf := make([]byte, 64<<10)
	for err == nil && end > 0 {
		from := max(0, end-int64(len(buf)))
		part := buf[:end-from]
		if _, err = f.ReadAt(part, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end = from + int64(i) + 1
			break
		}
		end = from
	}
	if err == nil && end < size {
		err = f.Truncate(end)
	}
	return end, err
}

// prune makes room for so many bytes more. Today's file stays.
func (t *Timeline) prune(today string, more int64) error {
	entries, err := os.ReadDir(t.Dir) // sorted by name, which is by day
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), TimelineSuffix) })
	sizes := make([]int64, len(entries))
	for i, e := range entries {
		if info, err := e.Info(); err == nil {
			sizes[i] = info.Size()
		}
		more += sizes[i]
	}
	for i, e := range entries {
		if more <= t.MaxBytes || e.Name() == today {
			break
		}
		if err := os.Remove(filepath.Join(t.Dir, e.Name())); err != nil {
			return err
		}
		more -= sizes[i]
	}
	return nil
}
