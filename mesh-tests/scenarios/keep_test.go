package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"suffrage/mesh-tests/history"
	"suffrage/mesh-tests/lab"
	"suffrage/mesh-tests/record"
)

// runsVariable names the file to which each run appends what came of it.
const runsVariable = "SUFFRAGE_MESH_RUNS"

// keepRun notes at the end how the run went, and keeps the hosts' logs and
// recorded decisions where it failed.
func (f *fleet) keepRun(dir string) {
	f.run.Scenario, f.run.Began = f.t.Name(), time.Now().UTC()
	f.t.Cleanup(func() {
		f.run.Seconds, f.run.Passed, f.run.Load = time.Since(f.run.Began).Seconds(), !f.t.Failed(), load()
		if f.t.Failed() && f.run.Failed == "" {
			f.run.Failed = "see the log of the test"
		}
		if file := os.Getenv(runsVariable); file != "" {
			if err := record.Append(file, f.run); err != nil {
				f.t.Error(err)
			}
		}
		if f.t.Failed() {
			f.keepLogs(dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			f.t.Error(err)
		}
	})
}

// load is the machine's load average over a minute, 0 where it is not told.
func load() float64 {
	var l float64
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &l)
	}
	return l
}

// clients put and get until the test ends, or endClients is called, and what the
// fleet is and does meanwhile is watched; then all of it is judged.
func (f *fleet) clients() {
	c := &history.Clients{Client: f.Client, Prefix: fmt.Sprintf("/mesh/%d/", time.Now().UnixNano())}
	w := f.watch(c)
	f.watched.Store(w)
	over := false
	f.endClients = func() {
		if over {
			return
		}
		over = true
		f.watched.Store(nil)
		r := w.ended()
		var err error
		if r.Operations, err = f.Operations(context.Background()); err != nil {
			f.fail("%v", err)
		}
		if r.Open, err = f.Open(context.Background()); err != nil {
			f.fail("%v", err)
		}
		f.mu.Lock()
		r.Rules = f.rules
		f.mu.Unlock()
		f.judge(r)
	}
	f.t.Cleanup(f.endClients)
	const some = 50 // what is lost by the first fault has to have been there
	f.wait("clients write", func() bool { return c.Acknowledged() >= some })
}

// judge says what is not as it has to be, and keeps a recording of which that can
// be said again.
func (f *fleet) judge(r *record.Recording) {
	f.t.Helper()
	f.t.Logf("clients: %d operations, %+v; %d member lists, %d decisions, %d operations", len(r.History), r.Writes, len(r.Members), len(r.Decisions), len(r.Operations))
	f.run.Operations += len(r.History)
	f.run.Acknowledged += r.Writes.Acknowledged
	f.run.Unacknowledged += r.Writes.Failed
	f.run.Gap = max(f.run.Gap, r.Writes.Gap.Seconds())
	if err := r.Judge(); err != nil {
		f.fail("%v", err)
	}
	if !f.t.Failed() {
		return
	}
	dir, err := os.MkdirTemp(lab.Kept(), "suffrage-recording-*")
	if err == nil {
		err = r.Write(dir)
	}
	if err != nil {
		f.t.Error(err)
		return
	}
	f.t.Logf("judge it again: go test ./mesh-tests/record -run TestJudge -v -args %s", dir)
}

// keepLogs leaves the hosts' logs and recorded decisions of a failed test.
func (f *fleet) keepLogs(dir string) {
	to, err := os.MkdirTemp(lab.Kept(), "suffrage-mesh-*")
	if err != nil {
		f.t.Error(err)
		return
	}
	if err := keepFiles(dir, to); err != nil {
		f.t.Error(err)
	}
	f.t.Logf("logs and decisions: %s", to)
}

// keepFiles copies the hosts' logs and recorded decisions. Of a host with a Disk
// the latter are where that was mounted from: it is gone by then.
func keepFiles(dir, to string) error {
	var errs []error
	for _, pattern := range []string{"*/*.log", "*/data/decisions/*", "*/" + lab.Backing + "/decisions/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		errs = append(errs, err)
		for _, file := range files {
			name, err := filepath.Rel(dir, file)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)
			}
			if err == nil {
				err = copyFile(file, filepath.Join(to, name))
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// copyFile copies between file systems: the hosts' is gone with the World.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
