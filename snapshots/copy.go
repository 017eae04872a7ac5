package snapshots

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Copy saves and verifies a snapshot of a datastore that no process has open: for
// a member that cannot serve any more. host is whose datastore it is.
//
// etcd writes its database some 100 ms after it acknowledged a write. A member
// that was told to stop has all of it there; one that was killed may lack the
// newest writes, which Save from the running member has.
func Copy(ctx context.Context, dataDir, host, dir string) (Saved, error) {
	began := time.Now()
	from := filepath.Join(dataDir, "member", "snap", "db")
	fail := func(err error) (Saved, error) {
		return Saved{}, fmt.Errorf("snapshots: copy %s: %w", from, err)
	}
	if !isLabel(host) {
		return fail(fmt.Errorf("host %q: want its name in the roster", host))
	}
	src, err := os.Open(from)
	if err != nil {
		return fail(err)
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return fail(err)
	}
	if err := makeDir(dir); err != nil {
		return fail(err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if err := errors.Join(removePartial(dir), needFree(dir, info.Size(), "the copy")); err != nil {
		return fail(err)
	}
	at, err := freshSecond(ctx, dir, host)
	if err != nil {
		return fail(err)
	}
	out := Saved{Time: at, Host: host}
	if out.Path, out.Facts, err = copied(ctx, src, dir, Name{Time: at, Host: host}); err != nil {
		return fail(err)
	}
	out.Took = time.Since(began).Milliseconds()
	return out, nil
}

// copied brings the database into a verified file with its final name, as write
// does with a stream.
func copied(ctx context.Context, src io.Reader, dir string, name Name) (path string, facts Facts, err error) {
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
	h := sha256.New()
	if _, err = io.Copy(io.MultiWriter(f, h), &ctxReader{ctx, src}); err == nil {
		_, err = f.Write(h.Sum(nil)) // as etcd ends its stream
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", facts, err
	}
	if facts, err = Verify(ctx, temp); err != nil {
		return "", facts, err
	}
	name.Revision = facts.Revision
	path = filepath.Join(dir, name.String())
	return path, facts, place(temp, path)
}

// Latest is the newest snapshot in a directory by its name, which only a verified
// one gets. It changes nothing there.
func Latest(dir string) (File, error) {
	files, err := list(dir)
	if err != nil {
		return File{}, err
	}
	for _, f := range files { // the newest first
		if f.State == StateSaved {
			return f, nil
		}
	}
	return File{}, fmt.Errorf("snapshots: %s holds no snapshot: bring one there, or name a file", dir)
}
