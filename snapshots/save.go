package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"suffrage/membership/etcd"
)

const (
	// stall is how long a save waits for the next byte. A frozen voter keeps its
	// connections open for ever.
	stall = 30 * time.Second
	// longest bounds one save.
	longest = time.Hour
	// progressEvery is how often Progress is told.
	progressEvery = 200 * time.Millisecond
)

// Progress is how far a save has come.
type Progress struct {
	Bytes, Total int64
	Elapsed      time.Duration
}

// Rate is in bytes per second.
func (p Progress) Rate() float64 {
	if p.Elapsed <= 0 {
		return 0
	}
	return float64(p.Bytes) / p.Elapsed.Seconds()
}

func (p Progress) String() string {
	return fmt.Sprintf("%s of %s, %s/s", bytesText(p.Bytes), bytesText(p.Total), bytesText(int64(p.Rate())))
}

// Saved is a snapshot that was just taken and verified: what the record of an
// operation needs. It was there, synced and whole, when Save returned it.
type Saved struct {
	Path string `json:"path"`
	// Time is when the save began, by this host's clock, to the second.
	Time      time.Time `json:"time"`
	Host      string    `json:"host"`
	Member    string    `json:"member"`
	ClusterID string    `json:"cluster_id"`
	Facts
	// Took is the time from the first call to the new name, in milliseconds.
	Took int64 `json:"took_ms"`
}

// Save takes a snapshot from a voter into a directory, which is made where it is
// missing. tell, if any, hears of progress about five times a second and once at
// the end of the transfer. After an error there is no new snapshot, and no
// partial file unless the process itself died.
func Save(ctx context.Context, src Source, dir string, tell func(Progress)) (Saved, error) {
	return saver{stall: stall, tell: tell}.save(ctx, src, dir)
}

type saver struct {
	stall time.Duration
	tell  func(Progress)
}

func (s saver) save(ctx context.Context, src Source, dir string) (Saved, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("snapshots: a save may take %v", longest))
	defer cancel()
	if !isLabel(src.Host) || len(src.Etcd.Endpoints) != 1 {
		return Saved{}, fmt.Errorf("snapshots: save: host %q with %d endpoints: one host and its own endpoint are needed", src.Host, len(src.Etcd.Endpoints))
	}
	fail := func(err error) (Saved, error) {
		return Saved{}, fmt.Errorf("snapshots: save from %s: %w", src.Host, err)
	}
	if err := makeDir(dir); err != nil {
		return fail(err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if err := removePartial(dir); err != nil {
		return fail(err)
	}
	v, err := openVoter(ctx, src)
	if err != nil {
		return fail(err)
	}
	defer v.close()
	if err := needFree(dir, v.size, "the database of "+src.Host); err != nil {
		return fail(err)
	}
	at, err := freshSecond(ctx, dir, src.Host)
	if err != nil {
		return fail(err)
	}
	out := Saved{Time: at, Host: src.Host, Member: src.Member, ClusterID: v.cluster}
	if out.Path, out.Facts, err = s.write(ctx, v, dir, out); err != nil {
		return fail(err)
	}
	out.Took = time.Since(began).Milliseconds()
	return out, nil
}

// freshSecond is now, to the second; a second one of the same host within one
// second waits for the next, since it would get the same name.
func freshSecond(ctx context.Context, dir, host string) (time.Time, error) {
	for {
		now := time.Now().UTC()
		at := now.Truncate(time.Second)
		prefix := Name{Time: at, Host: host}.prefix()
		taken, err := filepath.Glob(filepath.Join(globQuote(dir), prefix+"*"))
		if err != nil || len(taken) == 0 {
			return at, err
		}
		select {
		case <-time.After(at.Add(time.Second).Sub(now)):
		case <-ctx.Done():
			return at, context.Cause(ctx)
		}
	}
}

// prefix is the name without the revision, which is known last.
func (n Name) prefix() string {
	s := n.String()
	return s[:strings.LastIndexByte(s, '_')+1]
}

// write brings the stream into a verified file with its final name.
func (s saver) write(ctx context.Context, v *voter, dir string, n Saved) (path string, facts Facts, err error) {
	name := Name{Time: n.Time, Host: n.Host}
	temp := filepath.Join(dir, name.prefix()+partial)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", facts, err
	}
	defer func() {
		if err != nil {
			os.Remove(temp)
		}
	}()
	err = s.fetch(ctx, v, f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", facts, err
	}
	if facts, err = Verify(ctx, temp); err != nil {
		return "", facts, err
	}
	if facts.Revision < v.revision {
		return "", facts, fmt.Errorf("it gave a snapshot of revision %d, and was at %d before: look at its log, its database goes backwards", facts.Revision, v.revision)
	}
	name.Revision = facts.Revision
	path = filepath.Join(dir, name.String())
	return path, facts, place(temp, path)
}

// errStalled ends a transfer that does not move.
var errStalled = errors.New("no byte arrived in time: the voter is frozen or cut off")

// fetch copies the stream to w. It ends when the voter ends it, and that the
// whole was sent is what verifying shows.
func (s saver) fetch(ctx context.Context, v *voter, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog := time.AfterFunc(s.stall, func() { cancel(errStalled) })
	defer dog.Stop()
	stream, err := v.maintenance.Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return v.fail(ctx, "snapshot", err)
	}
	began, told := time.Now(), time.Time{}
	p := Progress{Total: v.size}
	limit := 2*v.size + 64<<20
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if s.tell != nil {
				s.tell(p)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %v: %w", p, v.fail(ctx, "snapshot", err))
		}
		if len(r.Blob) > 0 {
			dog.Reset(s.stall)
		}
		p.Bytes += int64(len(r.Blob))
		// The size at Status may have grown since; the first replies know better.
		p.Total = max(p.Bytes, p.Bytes+int64(min(r.RemainingBytes, 1<<50)))
		if p.Bytes > limit {
			return fmt.Errorf("it sends more than %s, twice the size that it told: this is no snapshot", bytesText(limit))
		}
		if _, err := w.Write(r.Blob); err != nil {
			return fmt.Errorf("after %v: %w", p, err)
		}
		p.Elapsed = time.Since(began)
		if s.tell != nil && time.Since(told) >= progressEvery {
			told = time.Now()
			s.tell(p)
		}
	}
}

// voter is a connection to the one that was named.
type voter struct {
	endpoint    string
	cluster     string
	size        int64 // of the database on its disk
	revision    int64
	maintenance pb.MaintenanceClient
	close       func() error
}

// openVoter connects, and makes sure of who answers.
func openVoter(ctx context.Context, src Source) (*voter, error) {
	endpoint := src.Etcd.Endpoints[0]
	if err := ping(ctx, src.Etcd); err != nil {
		return nil, err
	}
	client, err := src.Etcd.Client()
	if err != nil {
		return nil, err
	}
	// The bare connection: Status and Snapshot go over one, and nothing retries.
	v := &voter{endpoint: endpoint, maintenance: pb.NewMaintenanceClient(client.ActiveConnection()), close: client.Close}
	status, cancel := context.WithTimeout(ctx, src.Etcd.Timeout.Std())
	defer cancel()
	s, err := v.maintenance.Status(status, &pb.StatusRequest{}, grpc.WaitForReady(true))
	switch {
	case err != nil:
		err = v.fail(status, "status", err)
	case etcd.ID(s.Header.GetMemberId()) != src.Member:
		err = fmt.Errorf("member %s answers at %s, not %s: nothing was saved; look at where the address leads", etcd.ID(s.Header.GetMemberId()), endpoint, src.Member)
	case s.IsLearner:
		err = fmt.Errorf("%w: it is a learner still, and may lack most of the data", ErrNoVote)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	v.cluster, v.size, v.revision = etcd.ID(s.Header.GetClusterId()), s.DbSize, s.Header.GetRevision()
	return v, nil
}

// ping says why a connection cannot be made; etcd's client only says that it
// could not in time.
func ping(ctx context.Context, cfg etcd.Config) error {
	t, err := cfg.TLS()
	if err != nil {
		return err
	}
	c, err := etcd.Dial(cfg.Endpoints[0], t)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout.Std())
	defer cancel()
	return c.Ping(ctx)
}

// fail gives gRPC's error with its cause, in the form that etcd.Explain reads.
func (v *voter) fail(ctx context.Context, op string, err error) error {
	err = rpctypes.Error(err)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &etcd.CallError{Op: op, Endpoint: v.endpoint, Err: err, Accepted: true}
}
