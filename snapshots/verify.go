package snapshots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ErrBad means that a file is no whole snapshot.
var ErrBad = errors.New("snapshots: not a whole snapshot")

// Facts are what a snapshot says of itself when it is read to its end.
type Facts struct {
	// Size is that of the file, the appended hash included.
	Size   int64  `json:"size_bytes"`
	SHA256 string `json:"sha256"` // of the database, as appended by etcd
	Content
}

// Verify reads a snapshot to its end: the size, the SHA-256 that etcd appended,
// then every page and every key of the database, and that its name, where it is
// one of ours, tells the revision that it holds. An error wraps ErrBad when the
// file is at fault, and names the file and what is wrong with it.
func Verify(ctx context.Context, path string) (Facts, error) {
	size, sum, err := checkHash(ctx, path)
	if err != nil {
		return Facts{}, err
	}
	c, err := readDatabase(ctx, path)
	if err != nil {
		return Facts{}, err
	}
	if n, err := ParseName(filepath.Base(path)); err == nil && n.Revision != c.Revision {
		return Facts{}, bad(path, "its name says revision %d, it holds %d: it was renamed", n.Revision, c.Revision)
	}
	return Facts{Size: size, SHA256: sum, Content: c}, nil
}

// badFile is an error that the file is to blame for.
type badFile struct{ path, why string }

func bad(path, format string, args ...any) error {
	return &badFile{path, fmt.Sprintf(format, args...)}
}

func (e *badFile) Error() string { return fmt.Sprintf("%v: %s: %s", ErrBad, e.path, e.why) }
func (e *badFile) Unwrap() error { return ErrBad }

// checkHash comes before the database is opened: bbolt trusts its pages, and
// what was flipped or cut off on the way must not get there.
func checkHash(ctx context.Context, path string) (size int64, sum string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, "", fmt.Errorf("snapshots: verify: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, "", fmt.Errorf("snapshots: verify: %w", err)
	}
	if !info.Mode().IsRegular() {
		return 0, "", bad(path, "it is not a regular file")
	}
	size = info.Size()
	if why := badSize(size); why != "" {
		return 0, "", bad(path, "%s", why)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(&ctxReader{ctx, f}, size-sha256.Size)); err != nil {
		return 0, "", fmt.Errorf("snapshots: verify: read %s: %w", path, err)
	}
	appended := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, appended); err != nil {
		return 0, "", fmt.Errorf("snapshots: verify: read %s: %w", path, err)
	}
	if got := h.Sum(nil); !bytes.Equal(got, appended) {
		return 0, "", bad(path, "its content has the SHA-256 %x, the end of the file says %x: it was changed or damaged after it was taken", got, appended)
	}
	return size, hex.EncodeToString(appended), nil
}

// ctxReader ends when its context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
