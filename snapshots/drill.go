package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// drillLongest bounds a drill: etcd reads about 50 MB/s when it starts.
	drillLongest = 10 * time.Minute
	// drillStop is how long the scratch process may take to end.
	drillStop = 30 * time.Second
)

// ErrDrill means that the file is whole, but what etcd makes of it is not what
// it says.
var ErrDrill = errors.New("snapshots: the drill failed")

// Drilled is what a drill found.
type Drilled struct {
	// Snapshot is what the file says, Running what etcd says that was started
	// from it. They are equal where a Drilled is given without an error.
	Snapshot Facts   `json:"snapshot"`
	Running  Running `json:"running"`
	// Took is the whole time, Serving the part until etcd served, in milliseconds.
	Took    int64 `json:"took_ms"`
	Serving int64 `json:"serving_ms"`
}

// Running is what a running etcd says of the history up to one revision.
type Running struct {
	Revision int64  `json:"revision"`
	Keys     int64  `json:"keys"`
	HashKV   uint32 `json:"hash_kv"`
	// Later is how many revisions were made since: leases that run out while the
	// drill runs remove their keys. Nobody else can write there.
	Later int64 `json:"later"`
}

// Drill verifies a snapshot, starts a one-member etcd from it that nothing else
// can reach, compares keys, revision and hash, stops it, and leaves nothing.
// command gives the process that calls Scratch with its standard input and
// output. The scratch datastore is in the directory for temporary files
// (TMPDIR), which needs room for the database and 128 MiB.
func Drill(ctx context.Context, path string, command func() *exec.Cmd) (Drilled, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, drillLongest, fmt.Errorf("a drill may take %v", drillLongest))
	defer cancel()
	facts, err := Verify(ctx, path)
	if err != nil {
		return Drilled{}, err
	}
	d := Drilled{Snapshot: facts}
	fail := func(err error) (Drilled, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return d, fmt.Errorf("%w: %s: %w", ErrDrill, path, err)
	}
	s, err := startScratch(ctx, path, facts.Size, command)
	if err != nil {
		return fail(err)
	}
	d.Serving = time.Since(began).Milliseconds()
	d.Running, err = ask(ctx, s.endpoint(), facts.Revision)
	if err := errors.Join(err, s.stop()); err != nil {
		return fail(err)
	}
	d.Took = time.Since(began).Milliseconds()
	if why := d.differ(); why != "" {
		return fail(errors.New(why))
	}
	return d, nil
}

// differ says what etcd makes of the snapshot that the file does not say.
func (d Drilled) differ() string {
	var out []string
	for _, c := range []struct {
		what      string
		file, run int64
	}{
		{"revision", d.Snapshot.Revision, d.Running.Revision},
		{"keys", d.Snapshot.Keys, d.Running.Keys},
		{"hash", int64(d.Snapshot.HashKV), int64(d.Running.HashKV)},
	} {
		if c.file != c.run {
			out = append(out, fmt.Sprintf("%s: the file has %d, etcd started from it has %d", c.what, c.file, c.run))
		}
	}
	return strings.Join(out, "; ")
}

// ask reads the three figures as of one revision.
func ask(ctx context.Context, endpoint string, revision int64) (Running, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop(), Context: ctx})
	if err != nil {
		return Running{}, err
	}
	defer c.Close()
	s, err := c.Status(ctx, endpoint)
	if err != nil {
		return Running{}, fmt.Errorf("ask the scratch etcd for its status: %w", err)
	}
	now := s.Header.Revision
	out := Running{Revision: min(now, revision), Later: max(0, now-revision)}
	if now < revision {
		return out, nil
	}
	count, err := c.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly(), clientv3.WithRev(revision))
	if err != nil {
		return out, fmt.Errorf("count the keys in the scratch etcd: %w", err)
	}
	out.Keys = count.Count
	h, err := c.HashKV(ctx, endpoint, revision)
	if err != nil {
		return out, fmt.Errorf("ask the scratch etcd for its hash: %w", err)
	}
	out.HashKV = h.Hash
	return out, nil
}

// scratch is the process that runs etcd.
type scratch struct {
	dir     string
	cmd     *exec.Cmd
	in      io.WriteCloser
	stderr  tail
	unwatch func() bool
}

func (s *scratch) endpoint() string { return "unix://" + filepath.Join(s.dir, "client") }

func startScratch(ctx context.Context, path string, size int64, command func() *exec.Cmd) (*scratch, error) {
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := needFree(os.TempDir(), size+walRoom, "the scratch datastore"); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "suffrage-drill-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // as the process sees it
		return nil, err
	}
	s := &scratch{dir: dir, cmd: command()}
	s.cmd.Dir, s.cmd.Stderr, s.cmd.WaitDelay = dir, &s.stderr, drillStop
	if err := s.start(ctx, file); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// start runs the process and waits until it serves or ends.
func (s *scratch) start(ctx context.Context, file string) (err error) {
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	order, err := json.Marshal(scratchOrder{File: file, Dir: s.dir})
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.unwatch = context.AfterFunc(ctx, func() { _ = s.cmd.Process.Kill() })
	if _, err := s.in.Write(append(order, '\n')); err != nil {
		return fmt.Errorf("tell the scratch process: %w", err)
	}
	// The process is killed when ctx ends, and that ends this read.
	line, err := bufio.NewReaderSize(io.LimitReader(out, 4096), 64).ReadString('\n')
	if err != nil || line != "serving\n" {
		return errors.New("the scratch etcd did not come to serve")
	}
	return nil
}

// stop ends the process, by force where it does not end, and removes everything.
// Its error is what the process said.
func (s *scratch) stop() error {
	var err error
	if s.in != nil {
		s.in.Close()
	}
	if s.cmd.Process != nil {
		kill := time.AfterFunc(drillStop, func() { _ = s.cmd.Process.Kill() })
		if e := s.cmd.Wait(); e != nil {
			err = fmt.Errorf("scratch process: %w: %s", e, s.stderr.String())
		}
		kill.Stop()
		s.unwatch()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

const tailSize = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if n := len(t.b); n > tailSize {
		t.b = append([]byte(nil), t.b[n-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(bytes.TrimSpace(t.b)) }
