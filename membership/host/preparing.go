package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Preparing is root at work in a host's data directory. While it is open no member
// is started here, and no order lifts or puts up a fence. The directory is the
// services' user's, so that nothing in it is followed out of it.
type Preparing struct {
	dir      *os.Root
	unlock   func()
	uid, gid int
}

// ErrNoData: there is no data directory, so that no order was ever carried out here.
var ErrNoData = errors.New("host: there is no data directory")

// Prepare opens it, and waits for an order or a start that is under way as long as
// the context lets it. Files that it makes belong to uid and gid. Close it.
func Prepare(ctx context.Context, data string, uid, gid int) (*Preparing, error) {
	dir, err := os.OpenRoot(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoData, data)
	}
	if err != nil {
		return nil, fmt.Errorf("host: open the data directory: %w", err)
	}
	p := &Preparing{dir: dir, uid: uid, gid: gid}
	f, err := p.make(lockFile)
	if errors.Is(err, fs.ErrExist) {
		f, err = dir.OpenFile(lockFile, os.O_RDWR, 0)
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("host: lock: %w", err)
	}
	if p.unlock, err = take(ctx, f); err != nil {
		dir.Close()
		return nil, err
	}
	return p, nil
}

// make makes a file that must not be there.
func (p *Preparing) make(name string) (*os.File, error) {
	f, err := p.dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chown(p.uid, p.gid); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// PutFence puts up the fence of a standby that was never anything else. One that is
// there stays as it is.
func (p *Preparing) PutFence(now time.Time) error {
	content, err := json.Marshal(fence{At: now.UTC(), Prepared: true})
	if err != nil {
		return fmt.Errorf("host: put up the fence: %w", err)
	}
	const temp = "." + fenceFile + ".prepared"
	if err := p.dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("host: put up the fence: %w", err)
	}
	f, err := p.make(temp)
	if err == nil {
		_, err = f.Write(append(content, '\n'))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = p.dir.Link(temp, fenceFile)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err := errors.Join(err, p.dir.Remove(temp)); err != nil {
		return fmt.Errorf("host: put up the fence: %w", err)
	}
	return syncDir(p.dir.Name())
}

// Close lets members start again.
func (p *Preparing) Close() {
	p.unlock()
	p.dir.Close()
}
