package standby

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"suffrage/fitness"
)

// reportTime bounds what is asked of this host's agent.
const reportTime = 3 * time.Second

// report is what this host's agent measured, nil where it does not answer.
func (h Host) report(ctx context.Context) *fitness.Report {
	if h.Report == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	r, err := h.Report(ctx)
	if err != nil {
		return nil
	}
	return &r
}

// clock compares this host's clock with its peers', where its agent pings them;
// else it asks the kernel whether anything sets it.
func (h Host) clock(ctx context.Context) Check {
	const name = "time"
	const set = "set the clock by NTP: timedatectl set-ntp true, or chrony"
	var near, far []string
	if r := h.report(ctx); r != nil {
		for _, s := range r.Series {
			if s.Signal != fitness.Clock {
				continue
			}
			values := measured(s)
			if len(values) == 0 {
				continue
			}
			off := values[len(values)/2]
			text := fmt.Sprintf("%s %+.0f ms", s.Peer, off*1000)
			if math.Abs(off) > fitness.ClockWarning {
				far = append(far, text)
			} else {
				near = append(near, text)
			}
		}
	}
	const by = "by its agent's pings: "
	switch {
	case len(far) > len(near):
		return wrong(name, by+"away from "+strings.Join(far, ", "), set)
	case len(near) > 0 && len(near) == len(far):
		return unknown(name, errors.New(by+"near "+strings.Join(near, ", ")+", away from "+strings.Join(far, ", ")+": whose clock is wrong cannot be told"))
	case len(near) > 0:
		return ok(name, by+"in step with "+strings.Join(near, ", "))
	}
	const kernel = "by the kernel, since no agent here has pinged a peer yet: "
	yes, err := h.Synchronised()
	switch {
	case err != nil:
		return unknown(name, fmt.Errorf("%s%w", kernel, err))
	case !yes:
		return missing(name, kernel+"nothing sets this clock", set)
	}
	return ok(name, kernel+"the clock is set by something")
}

// Synchronised asks the kernel whether anything keeps its clock right
// (adjtimex(2): TIME_ERROR where nothing does).
func Synchronised() (bool, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, fmt.Errorf("adjtimex: %w", err)
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, nil
}

// measured are the newest values of a series, sorted.
func measured(s fitness.Series) (out []float64) {
	for _, m := range s.Samples[max(0, len(s.Samples)-fitness.WindowSize):] {
		if m.State == fitness.Measured {
			out = append(out, m.Value)
		}
	}
	slices.Sort(out)
	return out
}

// disk looks at the room for a datastore: its own largest size and a snapshot of
// it, and says what its agent has measured there.
func (h Host) disk(ctx context.Context) Check {
	const name = "disk"
	dir := h.Datastore
	var st unix.Statfs_t
	for {
		err := unix.Statfs(h.at(dir), &st)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == "/" || dir == "." {
			return unknown(name, &os.PathError{Op: "statfs", Path: dir, Err: err})
		}
		dir = filepath.Dir(dir)
	}
	free, need := int64(min(st.Bavail*uint64(st.Bsize), 1<<62)), 2*h.Quota
	found := fmt.Sprintf("%s free in %s, twice the quota is %s", fitness.Figure(free).Text("B"), dir, fitness.Figure(need).Text("B"))
	if free < need {
		return missing(name, found, "free space there, or a lower member.quota on every host")
	}
	fsync, err := h.fsync(ctx)
	if err != nil {
		return wrong(name, found+"; "+err.Error(), "journalctl -u suffrage-agent, and the kernel's log")
	}
	return ok(name, found+"; "+fsync)
}

func (h Host) fsync(ctx context.Context) (string, error) {
	r := h.report(ctx)
	if r == nil {
		return "its agent does not answer, so no fsync was measured", nil
	}
	for _, p := range r.Facts.Probes {
		if p.Name == string(fitness.WALFsync) && !p.OK {
			return "", fmt.Errorf("its agent's fsync probe fails: %s", p.Error)
		}
	}
	for _, s := range r.Series {
		if values := measured(s); s.Signal == fitness.WALFsync && len(values) > 0 {
			p99 := values[(len(values)*99+99)/100-1]
			return fmt.Sprintf("fsync p99 %s of %d by its agent", fitness.Figure(p99).Text("s"), len(values)), nil
		}
	}
	return "its agent has measured no fsync yet", nil
}
