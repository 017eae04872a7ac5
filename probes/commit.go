package probes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	commitKeys  = 8
	commitValue = 512 // bytes
)

var (
	commitBucket = []byte("probe")
	errInUse     = errors.New("another process has it open")
)

// Commit measures what etcd's backend meets: a small bbolt transaction on the
// datastore's filesystem, committed. It overwrites the same few keys, so that
// its file stays below 1 MiB.
//
// Not for concurrent use. A run cannot be interrupted.
type Commit struct {
	path  string
	db    *bbolt.DB
	n     uint64
	value []byte
	dead  error // bbolt panicked, and holds its locks for ever
}

// NewCommit makes a probe that writes dir/commit.probe. As with NewWAL nothing
// is opened before the first run.
func NewCommit(dir string) *Commit {
	return &Commit{path: filepath.Join(dir, "commit.probe"), value: make([]byte, commitValue)}
}

// Run commits once and returns how long the commit took. The transaction's
// preparation is memory only, and etcd's histogram leaves it out as well.
func (c *Commit) Run() (took time.Duration, err error) {
	if c.dead != nil {
		return 0, c.dead
	}
	// bbolt reads through a memory map, where a bad sector is a fault instead of
	// an error, and it panics on pages that make no sense. A dying disk must not
	// end the agent that is there to tell of it.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			c.dead = fmt.Errorf("probes: commit to %s: the file cannot be read (%v): look at the kernel's log for disk errors, delete it, and restart the agent", c.path, p)
			took, err = 0, c.dead
		}
	}()
	if took, err = c.run(); err != nil {
		c.Close()
		return 0, err
	}
	return took, nil
}

func (c *Commit) run() (took time.Duration, err error) {
	if c.db == nil {
		if err := c.open(); err != nil {
			return 0, err
		}
	}
	tx, err := c.db.Begin(true)
	if err != nil {
		return 0, diskError("begin a transaction in", c.path, err)
	}
	defer func() {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, bolterrors.ErrTxClosed) {
			err = errors.Join(err, diskError("roll back in", c.path, rollback))
		}
	}()
	b, err := tx.CreateBucketIfNotExists(commitBucket)
	if err != nil {
		return 0, diskError("write", c.path, err)
	}
	c.n++
	binary.BigEndian.PutUint64(c.value, c.n)
	if err := b.Put([]byte{byte(c.n % commitKeys)}, c.value); err != nil {
		return 0, diskError("write", c.path, err)
	}
	begun := time.Now()
	if err := tx.Commit(); err != nil {
		return 0, diskError("commit to", c.path, err)
	}
	return time.Since(begun), nil
}

func (c *Commit) open() error {
	err := c.openFile()
	_, system := errors.AsType[syscall.Errno](err)
	if err != nil && !system && !errors.Is(err, errInUse) {
		// Half a file, which a full disk leaves. Nothing in it is of value.
		if err := os.Remove(c.path); err != nil {
			return diskError("remove", c.path, err)
		}
		err = c.openFile()
	}
	return err
}

func (c *Commit) openFile() error {
	// As etcd opens its own, but for the size: a list of free pages that is not
	// written, and a file that grows in small steps.
	db, err := bbolt.Open(c.path, 0o600, &bbolt.Options{
		Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("probes: open %s: %w: give each agent a directory of its own", c.path, errInUse)
	}
	if err != nil {
		return diskError("open", c.path, err)
	}
	db.AllocSize = 64 << 10
	c.db = db
	return nil
}

// Close closes the file; the next run would open it again.
func (c *Commit) Close() error {
	if c.db == nil || c.dead != nil {
		return nil
	}
	err := c.db.Close()
	c.db = nil
	if err != nil {
		return fmt.Errorf("probes: close %s: %w", c.path, err)
	}
	return nil
}
